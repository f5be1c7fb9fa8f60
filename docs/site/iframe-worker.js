// Search from file://, where browsers forbid workers: the script of the worker runs in a frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const base = new URL(url, document.baseURI).href;
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      const begin = () => {
        const inside = frame.contentWindow;
        const load = (source) =>
          new Promise((done) => {
            const script = inside.document.createElement("script");
            script.onload = script.onerror = done;
            script.src = new URL(source, base).href;
            inside.document.body.append(script);
          });
        inside.importScripts = (...sources) =>
          sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        this.send = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        load(base).then(() => {
          this.waiting.forEach(this.send);
          this.waiting = null;
        });
      };
      document.body ? this.place(frame, begin) : addEventListener("load", () => this.place(frame, begin));
    }

    place(frame, begin) {
      document.body.append(frame);
      begin();
    }

    postMessage(data) {
      this.waiting ? this.waiting.push(data) : this.send(data);
    }

    terminate() {}
  };
}
