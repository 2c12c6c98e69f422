/** The parameters of the query as a form: one field per parameter, by its type. */
import { Field } from "../../kit/Field";
import { text } from "../../text/en";
import type { Workspace } from "./workspace";

export function Form({ space, run }: { space: Workspace; run(): void }) {
  const params = space.head.value?.params ?? [];
  return (
    <section class="parameters" aria-label={text.query.parameters}>
      <h2>{text.query.parameters}</h2>
      {params.length === 0 ? <p class="muted small">{text.query.noParameters}</p> : null}
      <form
        class="stack tight"
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            run();
          }
        }}
        onSubmit={(event) => {
          event.preventDefault();
          run();
        }}
      >
        {params.map(({ name, type }) => (
          <Field key={name} name={name} type={type} value={space.values.value[name] ?? ""} fault={space.faults.value[name]} onInput={(value) => space.setValue(name, value)} />
        ))}
        <button type="submit" class="visually-hidden" tabIndex={-1} aria-hidden="true" />
      </form>
    </section>
  );
}
