/** The styles of the widget as a text; the build makes the module. */
declare module "widget-styles" {
  const styles: string;
  export default styles;
}
