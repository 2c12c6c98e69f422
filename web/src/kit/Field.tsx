/** A field for a value of a type, with its name, type, fault and help. */
import { text } from "../text/en";
import { choicesOf, fieldKind, isOptional, type FieldFault } from "./fields";

const LONG = 80;

interface Props {
  name: string;
  type: string;
  value: string;
  fault?: string | undefined;
  /** Shows a fault of an empty field too. */
  strict?: boolean;
  onInput(value: string): void;
}

export const faultText = (fault: FieldFault): string => text.query.faults[fault];

export function Field({ name, type, value, fault, strict = false, onInput }: Props) {
  const kind = fieldKind(type);
  const shown = fault !== undefined && (strict || value !== "") ? fault : undefined;
  const help = type.startsWith("Vector") ? text.query.vectorHelp : kind === "list" ? text.query.listHelp : null;
  return (
    <label class="field">
      <span class="label">
        <span class="cut">{name}</span>
        <code class="muted cut">{kind === "enum" ? "enum" : type}</code>
      </span>
      <Input type={type} value={value} invalid={shown !== undefined} onInput={onInput} />
      {shown !== undefined ? <span class="fault">{shown}</span> : help === null ? null : <span class="help">{help}</span>}
    </label>
  );
}

function Input({ type, value, invalid, onInput }: { type: string; value: string; invalid: boolean; onInput(value: string): void }) {
  const kind = fieldKind(type);
  const placeholder = isOptional(type) ? text.query.optional : "";
  if (kind === "bool" || kind === "enum") {
    const choices = kind === "bool" ? ["true", "false"] : choicesOf(type);
    return (
      <select class="select" value={value} onChange={(event) => onInput(event.currentTarget.value)}>
        {isOptional(type) || value === "" ? <option value="">{text.query.unset}</option> : null}
        {choices.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    );
  }
  if (kind === "list" || (kind === "text" && (value.length > LONG || value.includes("\n")))) {
    return <textarea class="input" rows={kind === "list" ? 3 : 6} value={value} aria-invalid={invalid} placeholder={placeholder} onInput={(event) => onInput(event.currentTarget.value)} />;
  }
  if (kind === "date") return <input class="input" type="date" value={value} onInput={(event) => onInput(event.currentTarget.value)} />;
  const mode = kind === "integer" ? "numeric" : kind === "number" ? "decimal" : "text";
  return (
    <input
      class="input"
      type="text"
      inputMode={mode}
      value={value}
      aria-invalid={invalid}
      placeholder={kind === "datetime" ? "2026-03-04T18:20:00Z" : placeholder}
      autoComplete="off"
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
}
