/** A Blob: its size, a download, and a preview if its first bytes are those of a raster image. */
import { useEffect, useState } from "preact/hooks";

import { Problem, problemOf } from "../../api/problem";
import { announce } from "../../kit/announce";
import { saveFile } from "../../kit/files";
import { Icon } from "../../kit/Icon";
import { Loading, useLoad } from "../../kit/load";
import { plainText } from "../../kit/Plain";
import type { Place } from "../../source/source";
import { source } from "../../state/context";
import { text } from "../../text/en";
import { entityText as words } from "../../text/entity";
import { imageType, type ImageType } from "./images";

const HEAD_BYTES = 16;
/** Larger images are not loaded for a preview. */
const PREVIEW_MAX = 8_000_000;

interface Props {
  readonly here: Place;
  readonly type: string;
  readonly id: string;
  readonly property: string;
}

interface Stored {
  readonly size: number;
  readonly image: ImageType | null;
  /** The bytes, if they are shown. */
  readonly shown: Blob | null;
}

function read({ here, type, id, property }: Props, signal?: AbortSignal, range?: string): Promise<Response> {
  const headers = range === undefined ? {} : { Range: range };
  return source.open(here.graph, "blob", { params: { type, id, property, at: here.commit }, accept: "*/*", headers, signal });
}

async function inspect(of: Props, signal: AbortSignal): Promise<Stored> {
  const answer = await read(of, signal, `bytes=0-${HEAD_BYTES - 1}`).catch((error: unknown) => {
    // An empty value has no range.
    if (error instanceof Problem && error.status === 416) return new Response();
    throw error;
  });
  const head = new Uint8Array(await answer.arrayBuffer());
  const size = Number(answer.headers.get("Content-Range")?.split("/")[1] ?? head.length);
  const image = imageType(head);
  const shown = image === null || size > PREVIEW_MAX ? null : new Blob([await (await read(of, signal)).arrayBuffer()], { type: image });
  return { size, image, shown };
}

export function BlobValue(props: Props) {
  const { here, type, id, property } = props;
  const stored = useLoad(JSON.stringify([here.graph, here.commit, type, id, property]), (signal) => inspect(props, signal));
  const download = async (image: ImageType | null) => {
    try {
      // A type that the browser could open is given to images only.
      const content = new Blob([await (await read(props)).arrayBuffer()], { type: image ?? "application/octet-stream" });
      saveFile(content, `${type}-${id}-${property}.${image?.slice("image/".length) ?? "bin"}`.replace(/[^\w.-]+/g, "_"));
    } catch (error) {
      announce(problemOf(error)?.message ?? "");
    }
  };
  return (
    <Loading of={stored}>
      {({ size, image, shown }) => (
        <div class="blob">
          {shown === null ? null : <Preview content={shown} label={words.blobOf(property, plainText(id))} />}
          <span class="row wrap">
            <span class="muted number">{text.value.bytes(size)}</span>
            {image === null ? null : <span class="muted">{image}</span>}
            <button type="button" class="button small" aria-label={`${words.download} ${property}`} onClick={() => void download(image)}>
              <Icon name="download" />
              {words.download}
            </button>
          </span>
        </div>
      )}
    </Loading>
  );
}

function Preview({ content, label }: { content: Blob; label: string }) {
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => {
    const made = URL.createObjectURL(content);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [content]);
  return address === null ? null : <img src={address} alt={label} />;
}
