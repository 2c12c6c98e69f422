/** The branches and tags of a graph, with what can be done with each. */
import { useState } from "preact/hooks";

import type { BranchOutput, TagOutput } from "../../api/types";
import { DeleteBranchDialog, DeleteTagDialog, NewBranchDialog } from "../../commits/refs";
import { Icon } from "../../kit/Icon";
import { Loading, useLoad } from "../../kit/load";
import { Menu, type MenuItem } from "../../kit/Menu";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import type { Place } from "../../source/source";
import { config, source, written } from "../../state/context";
import { MAIN, tagRef } from "../../state/link";
import { href } from "../../state/location";
import { text } from "../../text/en";

const words = text.home;

type Asked = { readonly what: "new"; readonly from: string } | { readonly what: "delete"; readonly branch: BranchOutput } | { readonly what: "untag"; readonly tag: string };

export function Branches({ here }: { here: Place }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const key = `${here.graph} ${here.commit} ${written.value}`;
  const branches = useLoad(key, (signal) => source.history.branchStatus(here.graph, MAIN, signal));
  const tags = useLoad(key, (signal) => source.history.tags(here.graph, signal));
  const close = () => setAsked(null);
  return (
    <section class="card" aria-labelledby="branches">
      <header>
        <h2 id="branches">{words.branches}</h2>
      </header>
      <Loading of={branches}>
        {(all) => (
          <ul class="list">
            {all.map((branch) => (
              <BranchRow branch={branch} current={branch.name === here.ref} key={branch.name} onAsk={setAsked} />
            ))}
          </ul>
        )}
      </Loading>
      {tags.value !== undefined && tags.value.length > 0 ? (
        <>
          <h3 class="list-title">{words.tags}</h3>
          <ul class="list">
            {tags.value.map((tag) => (
              <TagRow tag={tag} current={tagRef(tag.name) === here.ref} key={tag.name} onAsk={setAsked} />
            ))}
          </ul>
        </>
      ) : null}
      {asked?.what === "new" ? <NewBranchDialog start={{ branch: asked.from }} onClose={close} /> : null}
      {asked?.what === "delete" ? <DeleteBranchDialog name={asked.branch.name} ahead={asked.branch.compared?.ahead ?? 0} onClose={close} /> : null}
      {asked?.what === "untag" ? <DeleteTagDialog name={asked.tag} onClose={close} /> : null}
    </section>
  );
}

function BranchRow({ branch, current, onAsk }: { branch: BranchOutput; current: boolean; onAsk(asked: Asked): void }) {
  const { name, head, compared } = branch;
  const items: MenuItem[] = [{ label: words.newFrom, run: () => onAsk({ what: "new", from: name }) }];
  if (name !== MAIN) items.push({ label: words.deleteBranch, run: () => onAsk({ what: "delete", branch }) });
  return (
    <li class="branch-row">
      <a class="item" href={href({ ref: name })} aria-current={current ? "true" : undefined}>
        <Icon name="branch" />
        <strong class="cut">
          <Plain text={name} />
        </strong>
        <span class="grow cut muted only-wide">{head.message === null ? "" : <Plain text={head.message} />}</span>
        <Time at={head.created_at} />
      </a>
      {name === MAIN || compared === undefined ? null : (
        <>
          <Distance branch={name} ahead={compared.ahead} behind={compared.behind} />
          <a class="button small" href={compare(MAIN, name)} aria-label={`${words.compare} ${name}`}>
            {words.compare}
          </a>
          <a class="button small" href={href({ ref: MAIN, screen: "proposals", path: [], params: { new: "1", source: name, target: MAIN } })} aria-label={`${words.propose} ${name}`}>
            {words.propose}
          </a>
        </>
      )}
      {config.read_only ? null : <Menu end bare class="button plain icon" label={words.more(name)} button={<Icon name="more" />} items={items} />}
    </li>
  );
}

function TagRow({ tag, current, onAsk }: { tag: TagOutput; current: boolean; onAsk(asked: Asked): void }) {
  const label = words.deleteTag(tag.name);
  return (
    <li class="branch-row">
      <a class="item" href={href({ ref: tagRef(tag.name) })} aria-current={current ? "true" : undefined}>
        <Icon name="pin" />
        <strong class="cut">
          <Plain text={tag.name} />
        </strong>
        <span class="grow cut muted only-wide">{tag.message === null ? "" : <Plain text={tag.message} />}</span>
        <code class="muted">{tag.graph_commit_id.slice(-6)}</code>
        <Time at={tag.created_at} />
      </a>
      {config.read_only ? null : (
        <button type="button" class="button plain icon" aria-label={label} title={label} onClick={() => onAsk({ what: "untag", tag: tag.name })}>
          <Icon name="close" />
        </button>
      )}
    </li>
  );
}

const compare = (from: string, to: string) => href({ screen: "diff", path: [], params: { from, to } });

/** How far a branch and main are apart; each number opens the changes. */
function Distance({ branch, ahead, behind }: { branch: string; ahead: number; behind: number }) {
  if (ahead === 0 && behind === 0) return <span class="badge">{words.level}</span>;
  return (
    <span class="row">
      {ahead > 0 ? (
        <a class="badge good" href={compare(MAIN, branch)} title={words.seeAhead(branch)}>
          {words.ahead(ahead)}
        </a>
      ) : null}
      {behind > 0 ? (
        <a class="badge warn" href={compare(branch, MAIN)} title={words.seeBehind(branch)}>
          {words.behind(behind)}
        </a>
      ) : null}
    </span>
  );
}
