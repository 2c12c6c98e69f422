/** Types of raster images by their first bytes. SVG is no such type: it can contain scripts. */
export type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

const SIGNS: readonly (readonly [ImageType, RegExp])[] = [
  ["image/png", /^\x89PNG\r\n\x1a\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
];

export function imageType(head: Uint8Array): ImageType | null {
  const start = String.fromCharCode(...head);
  return SIGNS.find(([, sign]) => sign.test(start))?.[0] ?? null;
}
