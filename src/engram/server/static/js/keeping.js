// What is kept on the phone: reports that were not sent yet, and the campaign as it was seen last.

const NAME = "engram";
let opened = null;

function database() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("reports", { keyPath: "key" });
      request.result.createObjectStore("seen", { keyPath: "where" });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

/** One piece of work in a transaction that is on the disk when this is done. */
async function within(store, mode, work) {
  const base = await database();
  return new Promise((resolve, reject) => {
    const transaction = base.transaction(store, mode, { durability: "strict" });
    const request = work(transaction.objectStore(store));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}

export const keep = (store, item) => within(store, "readwrite", (s) => s.put(item));
export const kept = (store, key) => within(store, "readonly", (s) => s.get(key));
export const allKept = (store) => within(store, "readonly", (s) => s.getAll());
export const forget = (store, key) => within(store, "readwrite", (s) => s.delete(key));

/** Ask the browser not to throw anything away when room is short. */
export function hold() {
  navigator.storage?.persist?.().catch(() => {});
}
