/** A picture as PNG, drawn from its SVG at twice its size. */
const SCALE = 2;
const SIDE_MAX = 8000;

export async function pngOf(svg: string): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    const [, , width = 800, height = 600] = (/viewBox="([^"]*)"/.exec(svg)?.[1] ?? "").split(" ").map(Number);
    image.src = url;
    await image.decode();
    const scale = Math.min(SCALE, SIDE_MAX / Math.max(width, height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => canvas.toBlob((blob) => (blob === null ? reject(new Error("no picture")) : resolve(blob)), "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}
