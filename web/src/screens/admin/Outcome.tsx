/** The results of maintenance. */
import { Plain } from "../../kit/Plain";
import { admin } from "../../text/admin";
import { bytesText } from "./format";

const words = admin.maintenance;

interface Optimized {
  tables: { table_key: string; fragments_before?: number; fragments_after?: number; committed: boolean; skipped?: string | null }[];
  branch: string;
}

interface CleanedTable {
  table_key: string;
  old_versions_removed: number;
  bytes_removed: number;
  error: string | null;
}

interface Cleanup {
  confirmed: boolean;
  tables: CleanedTable[];
  would_remove?: CleanedTable[];
}

interface Verified {
  sound: boolean;
  problems: { where: string; what: string }[];
}

const has = (value: unknown, member: string): boolean => typeof value === "object" && value !== null && member in value;
export const isCleanup = (value: unknown): value is Cleanup => has(value, "confirmed");
const isVerified = (value: unknown): value is Verified => has(value, "sound");
const isOptimized = (value: unknown): value is Optimized => has(value, "branch");

const cleaned = (of: Cleanup): readonly CleanedTable[] => (of.confirmed ? of.tables : (of.would_remove ?? of.tables));

/** What a cleanup removes, or would remove. */
export function removedOf(of: Cleanup): { versions: number; bytes: number } {
  const tables = cleaned(of);
  return { versions: tables.reduce((sum, each) => sum + each.old_versions_removed, 0), bytes: tables.reduce((sum, each) => sum + each.bytes_removed, 0) };
}

export function Outcome({ of }: { of: unknown }) {
  if (isCleanup(of)) return <Cleaned of={of} />;
  if (isVerified(of)) return <VerifiedView of={of} />;
  return isOptimized(of) ? <OptimizedView of={of} /> : null;
}

function VerifiedView({ of }: { of: Verified }) {
  if (of.sound) {
    return (
      <p role="status">
        <span class="badge good">{words.sound}</span>
      </p>
    );
  }
  return (
    <div role="status">
      <span class="badge bad">{words.problems(of.problems.length)}</span>
      <ul>
        {of.problems.map((each, at) => (
          <li key={at}>
            <strong>
              <Plain text={each.where} />
            </strong>{" "}
            <Plain text={each.what} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function OptimizedView({ of }: { of: Optimized }) {
  const changed = of.tables.filter((each) => each.committed);
  if (changed.length === 0) return <p role="status">{words.unchanged}</p>;
  return (
    <ul role="status" class="plain-list">
      {changed.map((each) => (
        <li key={each.table_key}>
          <strong>{each.table_key}</strong> {words.fragments(each.fragments_before ?? 0, each.fragments_after ?? 0)}
        </li>
      ))}
    </ul>
  );
}

function Cleaned({ of }: { of: Cleanup }) {
  const tables = cleaned(of).filter((each) => each.old_versions_removed > 0 || each.error !== null);
  if (tables.length === 0) return <p role="status">{words.nothing}</p>;
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={words.wouldRemove}>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">{admin.tables.table}</th>
            <th scope="col" class="number">
              {words.versions}
            </th>
            <th scope="col" class="number">
              {words.bytes}
            </th>
          </tr>
        </thead>
        <tbody>
          {tables.map((each) => (
            <tr key={each.table_key}>
              <th scope="row">{each.table_key}</th>
              <td class="number">{each.old_versions_removed.toLocaleString()}</td>
              <td class="number">{each.error ?? bytesText(each.bytes_removed)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
