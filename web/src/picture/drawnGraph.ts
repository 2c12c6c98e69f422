/**
 * The graph that sigma draws: the part of graphology's interface that sigma reads, without its indexes of neighbours.
 *
 * A picture is built once and then changes the attributes of all its nodes or all its edges, so that nodes and edges are
 * lists of attributes by position. Keys are the positions as texts.
 */
import type { AbstractGraph, Attributes } from "graphology-types";

type Listener = (payload: { hints?: { attributes?: readonly string[] } }) => void;
type Update = (key: string, attributes: Attributes) => Attributes;

export class DrawnGraph {
  // Sigma asks for these members before it takes an object for a graph.
  readonly multi = true;
  private readonly nodeKeys: string[] = [];
  private readonly edgeKeys: string[] = [];
  private readonly nodeAttributes = new Map<string, Attributes>();
  private readonly edgeAttributes = new Map<string, Attributes>();
  private readonly ends = new Map<string, readonly [string, string]>();
  private readonly listeners = new Map<string, Set<Listener>>();

  /** This graph with the type that sigma expects. */
  get forSigma(): AbstractGraph {
    return this as unknown as AbstractGraph;
  }

  get order(): number {
    return this.nodeKeys.length;
  }

  addNode(index: number, attributes: Attributes): void {
    this.nodeKeys.push(String(index));
    this.nodeAttributes.set(String(index), attributes);
  }

  addEdge(index: number, source: number, target: number, attributes: Attributes): void {
    this.edgeKeys.push(String(index));
    this.edgeAttributes.set(String(index), attributes);
    this.ends.set(String(index), [String(source), String(target)]);
  }

  addUndirectedEdgeWithKey(): never {
    throw new Error("a picture is directed");
  }

  dropNode(): never {
    throw new Error("a picture is replaced, not changed");
  }

  nodes = (): readonly string[] => this.nodeKeys;
  edges = (): readonly string[] => this.edgeKeys;
  hasNode = (key: string): boolean => this.nodeAttributes.has(key);
  hasEdge = (key: string): boolean => this.edgeAttributes.has(key);
  getNodeAttributes = (key: string): Attributes => this.nodeAttributes.get(key) as Attributes;
  getEdgeAttributes = (key: string): Attributes => this.edgeAttributes.get(key) as Attributes;
  extremities = (key: string): readonly [string, string] => this.ends.get(key) as readonly [string, string];

  forEachNode(visit: (key: string, attributes: Attributes) => void): void {
    for (const key of this.nodeKeys) visit(key, this.getNodeAttributes(key));
  }

  forEachEdge(visit: (key: string, attributes: Attributes, source: string, target: string) => void): void {
    for (const key of this.edgeKeys) visit(key, this.getEdgeAttributes(key), ...this.extremities(key));
  }

  /** Replaces the attributes of every node and tells sigma which names changed, all if none are named. */
  updateEachNode(update: Update, attributes?: readonly string[]): void {
    for (const key of this.nodeKeys) this.nodeAttributes.set(key, update(key, this.getNodeAttributes(key)));
    this.emit("eachNodeAttributesUpdated", attributes);
  }

  updateEachEdge(update: Update, attributes?: readonly string[]): void {
    for (const key of this.edgeKeys) this.edgeAttributes.set(key, update(key, this.getEdgeAttributes(key)));
    this.emit("eachEdgeAttributesUpdated", attributes);
  }

  on(event: string, listener: Listener): void {
    this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(listener));
  }

  removeListener(event: string, listener: Listener): void {
    this.listeners.get(event)?.delete(listener);
  }

  private emit(event: string, attributes: readonly string[] | undefined): void {
    for (const listener of this.listeners.get(event) ?? []) listener(attributes === undefined ? {} : { hints: { attributes } });
  }
}
