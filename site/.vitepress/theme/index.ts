/** The theme of VitePress in the colours of the console. */
import Theme from "vitepress/theme"
import "./colours.css"

export default Theme
