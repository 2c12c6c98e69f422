/** Long texts in links: above one kilobyte they are deflated, above eight they do not fit. */

const PLAIN_MAX = 1024;
export const PACKED_MAX = 8192;

/** Returns the parameter that holds a text: `q` as it is, or `z` deflated; null if the link would be too long. */
export async function packText(text: string): Promise<{ q: string } | { z: string } | null> {
  if (text.length <= PLAIN_MAX) return { q: text };
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  const packed = base64Url(bytes);
  return packed.length <= PACKED_MAX ? { z: packed } : null;
}

/** Returns the text of the parameters `q` or `z`; null if there is none or it is damaged. */
export async function unpackText(params: Readonly<Record<string, string>>): Promise<string | null> {
  if (params["q"] !== undefined) return params["q"];
  if (params["z"] === undefined) return null;
  try {
    const bytes = Uint8Array.from(atob(params["z"].replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(await through(bytes, new DecompressionStream("deflate-raw")));
  } catch {
    return null;
  }
}

async function through(bytes: Uint8Array<ArrayBuffer>, transform: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(transform);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function base64Url(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
