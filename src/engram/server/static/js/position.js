// Where the phone is, if it may be known.

export class Position {
  /** told: moved([lat, lon]), failed(words) */
  constructor(told) {
    this.told = told;
    this.here = null;
    this.watching = false;
  }

  get possible() {
    return "geolocation" in navigator && window.isSecureContext;
  }

  /** Begin at once where it was allowed before. */
  async resume() {
    if (!this.possible) return;
    const state = await navigator.permissions?.query({ name: "geolocation" }).catch(() => null);
    if (state?.state === "granted") this.watch();
  }

  watch() {
    if (this.watching || !this.possible) return;
    this.watching = true;
    navigator.geolocation.watchPosition(
      ({ coords }) => {
        this.here = [coords.latitude, coords.longitude];
        this.told.moved(this.here);
      },
      (error) => {
        this.watching = error.code !== error.PERMISSION_DENIED;
        this.told.failed(error.message);
      },
      { enableHighAccuracy: true, maximumAge: 5000 },
    );
  }
}
