"""What loads and stores move, and under what condition, on code written after real files."""

from handwritten import amdgcn, llir, ptx, stage

from artifact_inspector.analysis.access.accesses import count_accesses
from artifact_inspector.model import Stage


def test_four_words_of_32_bits_are_16_bytes_per_thread() -> None:
    found = count_accesses(ptx("ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];").accesses)
    assert found.loads == {16: 1}
    assert found.load_widths == {16: 1}


def test_copies_count_among_the_load_widths_and_stores_do_not() -> None:
    found = count_accesses(
        ptx(
            "cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10;",
            "ld.global.b16 { %rs1 }, [ %rd2 + 0 ];",
            "st.global.b32 [ %rd3 + 0 ], { %r2 };",
        ).accesses
    )
    assert (found.copies, found.loads, found.stores) == ({16: 1}, {2: 1}, {4: 1})
    assert found.load_widths == {16: 1, 2: 1}


def test_cache_words_are_counted_as_written() -> None:
    found = count_accesses(ptx("ld.global.L1::evict_first.b32 { %r1 }, [ %rd1 + 0 ];").accesses)
    assert found.cache == {"L1::evict_first": 1}


def test_a_tile_has_no_width_per_thread() -> None:
    # tensor<64x32xf16>: 64 · 32 · 2 = 4096 bytes for the block.
    pointers = "tensor<64x32x!tt.ptr<f16>>"
    (found,) = stage(
        Stage.TTIR,
        f"module {{\n  tt.func public @k(%p: {pointers}) {{\n    %x = tt.load %p : {pointers}\n    tt.return\n  }}\n}}\n",
    ).accesses
    assert found.transfer is not None
    assert found.transfer.is_per_block
    assert found.width is None
    assert count_accesses([found]).tiles == {4096: 1}
    assert count_accesses([found]).load_widths == {}


def test_a_guard_makes_an_access_predicated() -> None:
    (found,) = ptx("@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];").accesses
    assert found.is_predicated


def test_a_guard_that_is_always_true_makes_none() -> None:
    # Triton up to 3.2 guards loads without a mask by a predicate set to true.
    (found,) = ptx("mov.pred %p1, -1;", "@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];").accesses
    assert not found.is_predicated


def test_the_guard_of_inline_assembly_is_the_operand_that_it_numbers() -> None:
    # $0 is the result, $1 the address, $2 the guard.
    load = '%{} = tail call i32 asm sideeffect "@$2 ld.global.b32 {{ $0 }}, [ $1 + 0 ];", "=r,l,b"(ptr addrspace(1) %p, i1 {})'
    always, sometimes = llir(load.format("x", "true"), load.format("y", "%m"), "ret void").accesses
    assert not always.is_predicated
    assert sometimes.is_predicated


def test_a_copy_that_reads_as_many_bytes_as_a_register_says_has_its_mask_folded() -> None:
    masked, plain = ptx(
        "cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;",
        "cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10;",
    ).accesses
    assert masked.is_mask_folded
    assert not masked.is_predicated
    assert not plain.is_mask_folded


def test_a_load_that_a_branch_goes_around_is_predicated() -> None:
    (guarded, plain) = llir(
        "br i1 %m, label %load, label %join",
        "load:",
        "%x = load float, ptr addrspace(1) %p, align 4",
        "br label %join",
        "join:",
        "%y = load float, ptr addrspace(1) %p, align 4",
        "ret void",
    ).accesses
    assert guarded.is_predicated
    assert not plain.is_predicated


def test_a_load_in_a_loop_is_not_predicated_for_that() -> None:
    (found,) = llir(
        "br label %loop",
        "loop:",
        "%x = load float, ptr addrspace(1) %p, align 4",
        "br i1 %m, label %loop, label %out",
        "out:",
        "ret void",
    ).accesses
    assert not found.is_predicated


def test_lanes_that_are_off_make_a_load_predicated_without_a_branch() -> None:
    # LLVM leaves out the branch around so little code.
    guarded, plain = amdgcn(
        "s_and_saveexec_b64 s[0:1], vcc",
        "global_load_dword v1, v[2:3], off",
        "s_or_b64 exec, exec, s[0:1]",
        "global_load_dword v4, v[2:3], off",
    ).accesses
    assert guarded.is_predicated
    assert not plain.is_predicated


def test_lanes_stay_off_over_a_join_of_blocks_that_have_them_off() -> None:
    # The shape of fixtures/3.6.0 masked stores: the second cold block is entered from the first one,
    # and from the branch that it was moved away from.
    first, second = amdgcn(
        "s_and_saveexec_b64 s[0:1], vcc",
        "s_cbranch_execnz .LBB0_3",
        ".LBB0_1:",
        "s_or_b64 exec, exec, s[0:1]",
        "s_and_saveexec_b64 s[2:3], s[4:5]",
        "s_cbranch_execnz .LBB0_4",
        ".LBB0_2:",
        "s_endpgm",
        ".LBB0_3:",
        "global_load_dword v1, v[2:3], off",
        "s_or_b64 exec, exec, s[0:1]",
        "s_and_saveexec_b64 s[2:3], s[4:5]",
        "s_cbranch_execz .LBB0_2",
        ".LBB0_4:",
        "global_load_dword v4, v[2:3], off",
    ).accesses
    assert first.is_predicated
    assert second.is_predicated


def test_saving_the_mask_of_lanes_for_a_compare_does_not_restore_it() -> None:
    # `s_mov_b32 s1, exec_lo` reads the mask; `v_cmpx` narrows it.
    (found,) = amdgcn("s_mov_b32 s1, exec_lo", "v_cmpx_gt_i32_e32 s4, v0", "global_load_b32 v1, v[2:3], off").accesses
    assert found.is_predicated


def test_a_buffer_access_has_its_mask_folded() -> None:
    (found,) = amdgcn("buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen").accesses
    assert found.is_mask_folded
    assert not found.is_predicated
