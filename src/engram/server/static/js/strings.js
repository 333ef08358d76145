// Every word of the pages. To translate them, write another table and choose it in `table`.

const ENGLISH = {
  // everywhere
  allCampaigns: "engram: all campaigns",
  campaigns: "Campaigns",
  signOut: "Sign out",
  theme_auto: "Auto",
  theme_light: "Light",
  theme_dark: "Dark",
  themeName: "Colours: {theme}",
  unreachable: "The server cannot be reached. Try again in a moment.",
  computing: "Computing …",
  save: "Save",
  cellName: "Row {row}, column {col}",

  // the first page
  newCampaign: "New campaign",
  noCampaigns: "There is no campaign yet. Create the first one.",
  noPart: "You have no part in a campaign yet. Ask its owner for a link.",
  lineCounts: "{told} measured, {found} finds, {asked} out, {left} of the budget left",
  openMap: "Map",
  openCrew: "Crew's page",

  // a new campaign
  area: "Area",
  area_drawn: "Draw it on a map",
  area_file: "Upload a file",
  area_plain: "A plain grid",
  preview: "Preview of the cells",
  goTo: "Go to",
  goToHint: "Latitude, longitude; degrees.",
  go: "Go",
  cellSize: "Size of a cell",
  cellSizeHint: "With its unit: 50m, 1km.",
  maskHint: "With its unit, for polygons and GeoTIFF; empty for a mask of pixels.",
  file: "File",
  fileHint: "GeoJSON, GeoPackage, KML, zipped shapefile, GeoTIFF; or a mask: PNG, NPY, NPZ, CSV.",
  pixels: "Pixels of a cell: height,width",
  rows: "Rows",
  cols: "Columns",
  drawArea: "Draw the area",
  drawAgain: "Draw again",
  drawClosed: "Close cells by drawing",
  drawFirst: "Draw the area on the map: its cells are shown at once.",
  fileFirst: "Choose a file: its cells are shown at once.",
  sizeFirst: "Give the number of rows and columns.",
  earthHelp:
    "Arrow keys move the map, plus and minus zoom. While drawing, space sets a corner in the middle of the map and Enter finishes.",
  earthDrawHint:
    "Set corners on the map: click, or move its middle with arrow keys and press space. {n} so far; at least 3. The first corner again, a double click or Enter finishes.",
  plainCells: "{n} cells, {open} open",
  campaignName: "Name of the campaign",
  budgetField: "Budget",
  budgetHint: "How many measurements can be made.",
  missing: "What visits may miss",
  detectionField: "Chance that a visit finds a target that is there",
  detectionFieldHint: "1: a visit sees everything. Below: a cell may be visited again.",
  learnIt: "It is not known: learn it from visits of the same cells",
  falseAlarmField: "Chance that a visit reports a target that is not there",
  policy: "Engine",
  policy_default: "Memories (EM-PTDM)",
  policy_gp: "Gaussian process (light)",
  policy_random: "Random",
  policyHint: "What says which cell is next.",
  more: "More",
  seed: "Seed",
  seedHint: "The same seed gives the same suggestions.",
  create: "Create the campaign",

  // the map
  map: "Map",
  work: "Work",
  mapName: "Map of the area",
  mapHelp:
    "Arrow keys go from cell to cell, Enter opens a cell, Shift with arrow keys moves the map, plus and minus zoom, 0 shows the whole area.",
  zoomIn: "Zoom in",
  zoomOut: "Zoom out",
  layers: "Layers",
  layer: "Map of",
  layer_none: "nothing",
  layer_probability: "chance of target",
  layer_doubt: "doubt",
  layer_content: "expected content",
  layer_total: "score",
  layer_exploration: "term: exploration",
  layer_exploitation: "term: exploitation",
  layer_likelihood: "term: likelihood",
  layer_reward: "term: reward",
  about_none: "",
  about_probability: "How likely each cell holds target.",
  about_doubt: "How far the outcome may be from what is expected.",
  about_content: "What is expected to be measured in each cell.",
  about_total: "What cells are ranked by.",
  about_exploration: "How much a measurement would tell of the rest (Eq. 9).",
  about_exploitation: "How likely and how worthwhile target is there (Eq. 11).",
  about_likelihood: "Part of exploitation: how well the imagined areas agree.",
  about_reward: "Part of exploitation: how much like target it looks.",
  layerHere: "{layer}: {value}",
  show_visits: "Visits",
  show_tours: "Tours",
  sign_find: "Find",
  sign_blank: "Nothing there",
  signVisited: "{n} visit(s), nothing found so far, may have been missed",
  sign_out: "Out, in visiting order",
  sign_waiting: "To be tried again",
  sign_closed: "Closed",
  live: "Live",
  notLive: "Not connected",
  connecting: "Connecting",
  timeName: "Moment of the log",
  toNow: "Now",
  nowAt: "Now: event {seq}. {event}",
  pastAt: "Past: after event {seq}. {event}",
  momentLine: "{when} {kind} {text}",

  // where it stands
  status: "Where it stands",
  told: "Measured",
  found: "Finds",
  out: "Out",
  budgetLeft: "Budget left",
  leftWords:
    "Left to find: about {expected} ({low} to {high} at {level} %). Chance that anything is left: {chance} %.",
  targets: "Separate targets:",
  fitness: "Does the memory fit?",
  findsTitle: "Finds over measurements",
  leftTitle: "Left to find",
  findsChart: "{found} finds in {told} measurements",
  leftChart: "Left to find: {expected}, between {low} and {high} at {level} %",

  // handing out
  handOut: "Hand out cells",
  crewName: "Crew",
  firstCrew: "crew 1",
  nextCrew: "crew {n}",
  howMany: "How many cells",
  removeLine: "Remove this crew",
  addCrew: "Add a crew",
  peek: "Suggest only",
  handOutButton: "Hand out",
  handedOut: "{n} cells handed out",
  suggested: "Suggested, not reserved: {cells}",
  nothingOut: "Nothing is out.",
  crewHas: "{name}: {n}",

  planTours: "Plan tours within hours",
  planToursButton: "Plan and hand out",
  outingName: "tour",
  outingBy: "In the name of",
  howManyCrews: "Crews",
  cellsEach: "Cells at most",
  outingStart: "Start and end",
  hours: "Hours",
  speed: "Speed",
  minutesPerVisit: "Minutes at each cell",

  // one cell
  cell: "Cell",
  noCell: "Choose a cell on the map, or by its row and column.",
  row: "Row",
  col: "Column",
  showCell: "Show",
  story: "What happened here",
  noStory: "Nothing yet.",
  state_open: "open",
  state_out: "out",
  state_measured: "measured",
  state_visited: "visited, may be visited again",
  state_waiting: "to be tried again",
  state_closed: "closed",
  outWith: "out with {by}",
  query_asked: "out",
  query_told: "told",
  query_failed: "failed",
  query_expired: "lapsed",
  whyQuery: "Why here? Query {query}, {by}, {state}",
  pictureOf: "Maps around the cell and samples of it when query {query} was made",
  photoOf: "Photo. {note}",
  byVia: "{by} (sent by {via})",
  tell: "Tell what was there",
  tellButton: "Tell",
  toldWords: "{cell}: told",
  outcome: "Outcome",
  outcomeHint: "Share of target: 0 for nothing, 1 for a find.",
  detection: "Chance of finding it",
  detectionHint: "Of this visit, above 0 up to 1: how likely it finds a target that is there. Empty: {usual}.",
  detectionUsual: "as everywhere here, {chance}",
  detectionLearnt: "as learnt from the visits",
  visits: "Visits",
  visitFind: "target found",
  visitBlank: "nothing found",
  visitTrust: "finds what is there with {chance} %",
  by: "Crew",
  note: "Note",
  fail: "Could not be measured",
  failButton: "Report",
  failedWords: "{cell}: reported",
  tryAgainIn: "Try again after days",
  neverAgain: "Never again",
  reason: "Reason",
  correct: "Correct",
  correctButton: "Correct",
  correctedWords: "{cell}: corrected",
  retract: "Withdraw the measurement",
  closeCell: "Close this cell",
  openCell: "Open this cell",

  // area and budget
  areaAndBudget: "Area and budget",
  closeByDrawing: "Close or open cells by drawing",
  draw: "Draw on the map",
  drawHint:
    "Set corners on the map: click, or arrow keys and space. {n} so far; at least 3. The first corner again, a double click or Enter finishes.",
  finishDrawing: "Finish",
  undoCorner: "Undo",
  stopDrawing: "Cancel",
  drawnCells: "{n} cells inside: {free} can be closed, {closed} are closed.",
  closeThem: "Close {n}",
  openThem: "Open {n}",
  budget: "Budget",
  addToBudget: "Add to the budget",
  extend: "Extend",
  extended: "The budget is {budget} now",

  // log, people
  log: "Log",
  export: "Export {form}",
  kind_create: "Created",
  kind_ask: "Asked",
  kind_tell: "Told",
  kind_fail: "Failed",
  kind_correct: "Corrected",
  kind_retract: "Withdrawn",
  kind_close: "Closed",
  kind_open: "Opened",
  kind_extend: "Extended",
  people: "People and page",
  person: "{account}: {role} ({crew})",
  role: "Role",
  role_viewer: "viewer",
  role_crew: "crew",
  role_planner: "planner",
  role_owner: "owner",
  inviteTitle: "Invite somebody",
  nameOfPerson: "Name",
  makeLink: "Make a sign-in link",
  linkOf: "Link for {account}",
  linkOnce: "It is good once, and shown this once.",
  linkMade: "There is a link for {account}",
  qrOf: "QR code of the link for {account}",
  background: "Background",
  tiles: "Address of map tiles",
  tilesHint: "https, with {z}, {x} and {y}. Browsers then ask that host for pictures.",
  picture: "A picture under the cells",
  pictureHint: "Of the whole area, north up; kept with the campaign.",
  corners: "Its edges: south, west, north, east",
  cornersHint: "In degrees; empty: those of the area.",
  noPicture: "No picture",
  credit: "Whose background it is",

  // the crew's page
  online: "Online",
  offline: "Offline",
  offlineReady: "Works without a network",
  notOfflineReady: "Not ready to work without a network",
  needsSecure: "Without a network only over https",
  neverSeen: "There is no network, and this campaign was not opened on this phone before. Open it once with a network.",
  signInAgain: "You are signed out; what is not sent yet is kept here.",
  signInLink: "Sign in",
  nextCell: "Next cell",
  myCells: "My cells, in visiting order",
  nothingToDo: "Nothing is out with you.",
  askMore: "Ask for {n} more",
  askedMore: "{n} more cells for you",
  usePosition: "Use my position",
  noPosition: "The position is not known: {words}",
  sortFromHere: "Sort from here",
  notMine: "{cell} is not yours.",
  way: "{far} {compass} ({angle}°)",
  stepsAway: "{rows}, {cols}",
  stepsUp: "{n} up",
  stepsDown: "{n} down",
  stepsLeft: "{n} left",
  stepsRight: "{n} right",
  stepsNone: "same row",
  stepsNoneAcross: "same column",
  compass: "N NE E SE S SW W NW",
  metres: "{n} m",
  kilometres: "{n} km",
  valueNotePhoto: "Value, note, photo",
  value: "Measured value",
  valueHint: "From {low} to {high}; may be left out.",
  photo: "Photo",
  badPhoto: "The photo cannot be read: {words}",
  whatWasThere: "What was there? {cell}",
  foundButton: "Found",
  nothingButton: "Nothing",
  unreachedButton: "Cannot reach",
  tryLater: "Try again tomorrow",
  never: "Never again",
  keptReport: "{cell}: kept, and sent as soon as possible",
  notSent: "{n} not sent",
  allSent: "All sent",
  unsent: "Not sent yet",
  unsentN: "Not sent yet: {n}",
  withPhoto: "photo",
  mine: "You:",
  mineLater: "cannot be reached, try again",
  mineNever: "can never be reached",
  theirs: "In the log: {kind} by {by}, {when}: {text}",
  troubles: "Please look at these",
  trouble_conflict: "Somebody else was faster.",
  trouble_refused: "Not taken.",
  tryAgain: "Try again",
  withoutPhoto: "Send without the photo",
  discard: "Discard mine",
  discardSure: "Really discard?",
};

const table = ENGLISH;
const locale = "en";

/** The words of a name, with values in place of {names}. */
export function t(name, values = {}) {
  const words = table[name];
  if (words === undefined) {
    console.error(`no words for ${name}`);
    return name;
  }
  return words.replace(/\{(\w+)\}/g, (whole, key) => (key in values ? String(values[key]) : whole));
}

const whole = new Intl.NumberFormat(locale);
const rounded = new Intl.NumberFormat(locale, { maximumSignificantDigits: 3 });

export const number = (value) => (Number.isInteger(value) ? whole : rounded).format(value);

export const cellName = ([row, col]) => t("cellName", { row, col });

const moment = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

/** A time of the log: seconds, or ISO 8601. */
export const when = (at) => moment.format(typeof at === "number" ? at * 1000 : Date.parse(at));

/** A point on Earth. */
export const degrees = ([lat, lon]) =>
  `${Math.abs(lat).toFixed(5)}° ${lat < 0 ? "S" : "N"}, ${Math.abs(lon).toFixed(5)}° ${lon < 0 ? "W" : "E"}`;

/** A direction from north. */
export const compass = (angle) => t("compass").split(" ")[Math.round(angle / 45) % 8];

/** A distance. */
export const metres = (far) =>
  far < 995 ? t("metres", { n: number(Math.round(far / 5) * 5) }) : t("kilometres", { n: number(Math.round(far / 100) / 10) });

/** From cell to cell on a plain grid. */
export function steps(from, to) {
  const down = to[0] - from[0], right = to[1] - from[1];
  const rows = down ? t(down > 0 ? "stepsDown" : "stepsUp", { n: Math.abs(down) }) : t("stepsNone");
  const cols = right ? t(right > 0 ? "stepsRight" : "stepsLeft", { n: Math.abs(right) }) : t("stepsNoneAcross");
  return t("stepsAway", { rows, cols });
}
