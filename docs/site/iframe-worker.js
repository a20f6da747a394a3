// Browsers start no workers for pages that are opened as files. The search then runs in a hidden frame, which it takes for a worker.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script src="${url}"></script>`;
      const loaded = new Promise((done) => frame.addEventListener("load", done));
      this.postMessage = async (data) => {
        await loaded;
        const inside = frame.contentWindow;
        inside.postMessage = (answer) => this.dispatchEvent(new MessageEvent("message", { data: answer }));
        inside.dispatchEvent(new MessageEvent("message", { data }));
      };
      document.body.append(frame);
    }
  };
  window.Worker = window.IFrameWorker;
}
