// The search where pages are opened from disk: browsers start no workers there, so that the theme's runs in a hidden frame.
// The theme's plugin `offline` would fetch a script of this name from another site.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      const inside = frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.started = new Promise(start => {
        const script = inside.document.createElement("script")
        script.src = new URL(url, location)
        script.onload = () => start(inside)
        inside.document.body.appendChild(script)
      })
    }

    postMessage(data) {
      this.started.then(inside => inside.dispatchEvent(new inside.MessageEvent("message", { data })))
    }
  }
}
