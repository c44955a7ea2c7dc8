import { ExtensionContext, workspace } from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  const settings = workspace.getConfiguration("inspect-kernel");
  const command = settings.get<string>("command", "inspect-kernel");
  const args = ["lsp", ...settings.get<string[]>("arguments", [])];
  const selector = [{ scheme: "file", language: "python" }];
  client = new LanguageClient("inspect-kernel", { command, args }, { documentSelector: selector });
  context.subscriptions.push(client);
  await client.start();
}

export function deactivate(): Promise<void> | undefined {
  return client?.stop();
}
