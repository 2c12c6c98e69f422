/** The query as code of other programs. */
import type { QueryRequest } from "../../source/source";

const shell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const python = (value: unknown): string =>
  JSON.stringify(value, null, 0).replace(/\b(true|false|null)\b(?=([^"]*"[^"]*")*[^"]*$)/g, (word) => ({ true: "True", false: "False", null: "None" })[word] ?? word);
const pythonText = (text: string): string => (text.includes('"""') || text.includes("\\") ? JSON.stringify(text) : `"""\n${text}\n"""`);

export interface CopyTarget {
  readonly address: string;
  readonly graph: string;
  /** The path of a route of the graph. */
  readonly path: string;
  readonly ref: { branch: string } | { at: string };
  readonly change: boolean;
}

export function asPython(request: QueryRequest, target: CopyTarget): string {
  const call = target.change ? "mutate" : "query";
  const point = "branch" in target.ref ? `branch=${JSON.stringify(target.ref.branch)}` : `at=${JSON.stringify(target.ref.at)}`;
  const name = request.name === null ? "" : `, ${JSON.stringify(request.name)}`;
  const params = Object.keys(request.params).length === 0 ? "" : `, params=${python(request.params)}`;
  return `import omnigraph as og\n\ngraph = og.open(${JSON.stringify(target.address)})\nresult = graph.${call}(${pythonText(request.text)}${name}${params}, ${point})\nprint(result)\n`;
}

export function asCurl(request: QueryRequest, target: CopyTarget): string {
  const body = { query: request.text, ...(request.name === null ? {} : { name: request.name }), params: request.params, ...target.ref };
  return `curl ${shell(`${target.address}/${target.path}`)} \\\n  -H "Authorization: Bearer $OMNIGRAPH_TOKEN" \\\n  -H 'Content-Type: application/json' \\\n  -d ${shell(JSON.stringify(body))}\n`;
}

export function asCommand(request: QueryRequest, target: CopyTarget): string {
  const params = Object.entries(request.params).map(([name, value]) => ` \\\n  -p ${shell(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)}`);
  const point = "branch" in target.ref ? `--branch ${shell(target.ref.branch)}` : `--at ${shell(target.ref.at)}`;
  const name = request.name === null ? "" : ` -n ${shell(request.name)}`;
  return `omnigraph ${target.change ? "change" : "read"} -e ${shell(request.text)}${name}${params.join("")} \\\n  ${point} --server ${shell(target.address)}\n`;
}
