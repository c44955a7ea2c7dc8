// node check.mjs FILE.py CACHE COMMAND...: open a file as an editor does; print its lenses and findings as JSON.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import protocol from "vscode-languageserver-protocol/node.js";

const [file, cache, command, ...prefix] = process.argv.slice(2);
const started = Date.now();
const server = spawn(command, [...prefix, "lsp", "--cache", cache], { stdio: ["pipe", "pipe", "inherit"] });
const connection = protocol.createProtocolConnection(
  new protocol.StreamMessageReader(server.stdout), new protocol.StreamMessageWriter(server.stdin));
const uri = pathToFileURL(file).href;
const published = new Promise((resolve) => connection.onNotification(
  "textDocument/publishDiagnostics", ({ diagnostics }) => resolve(diagnostics)));
connection.listen();
const { capabilities } = await connection.sendRequest(
  "initialize", { processId: process.pid, rootUri: null, capabilities: {} });
await connection.sendNotification("initialized", {});
const text = readFileSync(file, "utf8");
await connection.sendNotification(
  "textDocument/didOpen", { textDocument: { uri, languageId: "python", version: 1, text } });
const diagnostics = await published;
const seconds = (Date.now() - started) / 1000;
const lenses = await connection.sendRequest("textDocument/codeLens", { textDocument: { uri } });
await connection.sendRequest("shutdown");
await connection.sendNotification("exit");
const codes = diagnostics.map(({ code, range }) => [code, range.start.line + 1]);
console.log(JSON.stringify({
  seconds, codes, lenses: lenses.map(({ command }) => command.title), hasLenses: !!capabilities.codeLensProvider }));
process.exit(0);
