// Keeps the crew's page for days without a network. VERSION, a hash of all files, stands in the
// first line, which the server writes; another version is fetched as a whole and takes over.

const SHELL = "/crew/shell";
const MODULES = [
  "api", "area_map", "cells_layer", "colours", "crew", "crew_lists", "dom", "forms", "header",
  "keeping", "lattice", "outbox", "photo", "position", "report_form", "strings", "tour", "visits",
];
const FILES = [
  "/static/css/base.css",
  "/static/css/map.css",
  "/static/css/crew.css",
  "/static/icon.svg",
  "/static/crew.webmanifest",
  "/static/vendor/leaflet/leaflet.css",
  "/static/vendor/leaflet/leaflet.js",
  ...MODULES.map((name) => `/static/js/${name}.js`),
];
const CACHE = `engram-${VERSION}`;

self.addEventListener("install", (event) => {
  const fresh = [SHELL, ...FILES].map((path) => new Request(path, { cache: "reload" }));
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(fresh)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const old = caches.keys().then((names) => names.filter((name) => name.startsWith("engram-") && name !== CACHE));
  event.waitUntil(old.then((names) => Promise.all(names.map((name) => caches.delete(name)))).then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin || pathname.startsWith("/api/")) return;
  const wanted = request.mode === "navigate" && pathname.startsWith("/crew/") ? SHELL : pathname;
  event.respondWith(
    caches.open(CACHE).then((cache) => cache.match(wanted)).then((found) => found ?? fetch(request)),
  );
});
