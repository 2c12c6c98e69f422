/**
 * The node and edge programs of the scene: what a mark looks like without its colour.
 *
 * Nodes: a disc, a disc with a plus (added), a disc within a ring (changed, selected), a dashed ring without filling
 * (removed). Edges: a solid or a dashed line with an arrow head. One program draws all nodes and two draw all edges, so
 * that marks cost no further draw calls. `edgeLimits` lowers the
 * number of edges that are drawn while the camera moves.
 */
import { createEdgeCompoundProgram, EdgeArrowHeadProgram, EdgeClampedProgram, EdgeProgram, NodeCircleProgram } from "sigma/rendering";
import type { EdgeProgramType, NodeProgramType } from "sigma/rendering";
import type { NodeDisplayData } from "sigma/types";
import { floatColor } from "sigma/utils";

import { Form } from "./scene";

/** The attributes of a node that its program reads beside those of sigma. */
export interface MarkedNode {
  second: string;
  form: Form;
}

const NODE_VERTEX = `
attribute vec4 a_id;
attribute vec4 a_color;
attribute vec4 a_second;
attribute vec2 a_position;
attribute float a_size;
attribute float a_form;
attribute float a_angle;
uniform mat3 u_matrix;
uniform float u_sizeRatio;
uniform float u_correctionRatio;
varying vec4 v_color;
varying vec4 v_second;
varying vec2 v_offset;
varying float v_radius;
varying float v_form;
const float bias = 255.0 / 254.0;
void main() {
  float size = a_size * u_correctionRatio / u_sizeRatio * 4.0;
  vec2 offset = size * vec2(cos(a_angle), sin(a_angle));
  gl_Position = vec4((u_matrix * vec3(a_position + offset, 1)).xy, 0, 1);
  v_offset = offset;
  v_radius = size / 2.0;
  v_form = a_form;
  #ifdef PICKING_MODE
  v_color = a_id;
  #else
  v_color = a_color;
  #endif
  v_second = a_second;
  v_color.a *= bias;
  v_second.a *= bias;
}
`;

/** Distances are shares of the radius; colours are premultiplied. `edge` is one pixel, for smooth borders. */
const NODE_FRAGMENT = `
precision highp float;
varying vec4 v_color;
varying vec4 v_second;
varying vec2 v_offset;
varying float v_radius;
varying float v_form;
uniform float u_correctionRatio;
float within(float at, float low, float high, float edge) {
  return smoothstep(low - edge, low + edge, at) * (1.0 - smoothstep(high - edge, high + edge, at));
}
void main(void) {
  float at = length(v_offset) / v_radius;
  #ifdef PICKING_MODE
  gl_FragColor = at > 1.0 ? vec4(0.0) : v_color;
  #else
  float edge = min(0.3, u_correctionRatio * 1.5 / v_radius);
  float disc = 1.0 - smoothstep(1.0 - 2.0 * edge, 1.0, at);
  if (v_form < 0.5) {
    gl_FragColor = v_color * disc;
  } else if (v_form < 1.5) {
    float inner = 1.0 - smoothstep(0.62 - edge, 0.62 + edge, at);
    gl_FragColor = v_color * inner + v_second * within(at, 0.76, 1.0 - edge, edge);
  } else if (v_form < 2.5) {
    float turn = fract(atan(v_offset.y, v_offset.x) / 6.2831853 * 9.0);
    float dash = within(turn, 0.2, 0.8, 0.08);
    gl_FragColor = v_second * max(within(at, 0.7, 1.0 - edge, edge) * dash, disc * 0.14);
  } else {
    vec2 away = abs(v_offset) / v_radius;
    float bar = max(step(away.x, 0.14) * step(away.y, 0.58), step(away.y, 0.14) * step(away.x, 0.58));
    gl_FragColor = mix(v_color, v_second, bar) * disc;
  }
  #endif
}
`;

const { FLOAT, UNSIGNED_BYTE } = WebGLRenderingContext;

class MarkedNodeProgram extends NodeCircleProgram {
  override getDefinition() {
    const base = super.getDefinition();
    return {
      ...base,
      VERTEX_SHADER_SOURCE: NODE_VERTEX,
      FRAGMENT_SHADER_SOURCE: NODE_FRAGMENT,
      ATTRIBUTES: [...base.ATTRIBUTES, { name: "a_second", size: 4, type: UNSIGNED_BYTE, normalized: true }, { name: "a_form", size: 1, type: FLOAT }],
    };
  }

  override processVisibleItem(index: number, start: number, data: NodeDisplayData & Partial<MarkedNode>): void {
    super.processVisibleItem(index, start, data);
    this.array[start + 5] = floatColor(data.second ?? data.color);
    this.array[start + 6] = data.form ?? Form.Disc;
  }
}

const DASHED_VERTEX = `
attribute vec4 a_id;
attribute vec4 a_color;
attribute vec2 a_normal;
attribute float a_normalCoef;
attribute vec2 a_positionStart;
attribute vec2 a_positionEnd;
attribute float a_positionCoef;
attribute float a_radius;
attribute float a_radiusCoef;
uniform mat3 u_matrix;
uniform float u_sizeRatio;
uniform float u_correctionRatio;
uniform float u_minEdgeThickness;
uniform float u_lengthToThicknessRatio;
varying vec4 v_color;
varying float v_along;
const float bias = 255.0 / 254.0;
void main() {
  float radius = a_radius * a_radiusCoef;
  vec2 normal = a_normal * a_normalCoef;
  vec2 position = mix(a_positionStart, a_positionEnd, a_positionCoef);
  float thickness = length(normal);
  vec2 unit = normal / thickness;
  float width = max(thickness, u_minEdgeThickness * u_sizeRatio) * u_correctionRatio / u_sizeRatio;
  float direction = sign(radius);
  float back = direction * radius * 2.0 * u_correctionRatio / u_sizeRatio + width * u_lengthToThicknessRatio * 2.0;
  vec2 shift = vec2(-direction * unit.y, direction * unit.x) * back;
  gl_Position = vec4((u_matrix * vec3(position + unit * width + shift, 1)).xy, 0, 1);
  v_along = a_positionCoef * distance(a_positionStart, a_positionEnd) / (2.0 * u_correctionRatio);
  #ifdef PICKING_MODE
  v_color = a_id;
  #else
  v_color = a_color;
  #endif
  v_color.a *= bias;
}
`;

/** Dashes of five pixels with gaps of four. */
const DASHED_FRAGMENT = `
precision highp float;
varying vec4 v_color;
varying float v_along;
void main(void) {
  if (mod(v_along, 9.0) > 5.0) discard;
  gl_FragColor = v_color;
}
`;

/** The most edges that a scene draws, by its sigma; a scene without a number draws all. */
export const edgeLimits = new WeakMap<object, number>();

/** sigma types its finished programs without the members of their base class. */
type Concrete = EdgeProgram & { getDefinition(): Definition };
type Definition = ReturnType<EdgeProgram["getDefinition"]>;
type EdgeBase = abstract new (...given: ConstructorParameters<typeof EdgeProgram>) => Concrete;
const asBase = (program: EdgeProgramType): EdgeBase => program as unknown as EdgeBase;
const asProgram = (base: EdgeBase): EdgeProgramType => base as unknown as EdgeProgramType;

/** Draws at most as many edges as the scene allows: the first ones, see `sampled`. */
function limited(program: EdgeProgramType): EdgeProgramType {
  abstract class Limited extends asBase(program) {
    override drawWebGL(method: number, info: Parameters<EdgeProgram["drawWebGL"]>[1]): void {
      const all = this.capacity;
      this.capacity = Math.min(all, edgeLimits.get(this.renderer) ?? all);
      if (this.capacity > 0) super.drawWebGL(method, info);
      this.capacity = all;
    }
  }
  return asProgram(Limited);
}

abstract class DashedBody extends asBase(EdgeClampedProgram) {
  override getDefinition(): Definition {
    return { ...super.getDefinition(), VERTEX_SHADER_SOURCE: DASHED_VERTEX, FRAGMENT_SHADER_SOURCE: DASHED_FRAGMENT };
  }
}

const withHead = (body: EdgeProgramType): EdgeProgramType => createEdgeCompoundProgram([limited(body), limited(EdgeArrowHeadProgram)]);

export const NODE_PROGRAMS: Record<string, NodeProgramType> = { circle: MarkedNodeProgram };
export const EDGE_PROGRAMS: Record<string, EdgeProgramType> = { arrow: withHead(EdgeClampedProgram), dashed: withHead(asProgram(DashedBody)) };
