# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""`ocsctl report`: the page, as a browser draws it."""

import html.parser
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import zlib

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browse():
    if not BROWSER:
        pytest.skip("no Chromium")

    def run(path, *options):
        """The browser is no part of the cluster: it sees the file and has no network."""
        return subprocess.run(
            [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + path + ".profile",
             "--enable-logging=stderr", "--virtual-time-budget=4000", *options, "file://" + path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)

    return run


class Page(html.parser.HTMLParser):
    """Elements with their classes, titles and texts; rows of tables by the heading before them."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.cubes, self.facts, self.tables, self.notes = [], [], {}, {}, []
        self.path, self.body, self.row, self.title, self.value = [], {}, None, None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        classes = (attributes.get("class") or "").split()
        if tag == "body":
            self.body = attributes
        if "cell" in classes and tag == "div":
            self.cells.append(attributes)
        if tag == "tr" and self.title:
            self.row = []
            self.tables.setdefault(self.title, []).append(self.row)
        if tag in ("td", "th") and self.row is not None:
            self.row.append("")  # a cell without a text is one, too
        if tag not in ("meta", "i", "path", "br", "link", "input"):
            self.path.append(tag)

    def handle_endtag(self, tag):
        while self.path and self.path.pop() != tag:
            pass

    def handle_data(self, text):
        at = self.path[-1] if self.path else ""
        if at == "h2":
            self.title = text
        elif at in ("td", "th") and self.row is not None:
            self.row[-1] += text
        elif at == "small":
            self.cubes.append(text)
        elif at == "b":
            self.value = text
        elif at == "li":
            self.facts[text] = self.value
        elif at == "p":
            self.notes.append(text)

    def rows(self, title):
        head, *rows = self.tables.get(title, [[]])
        return [dict(zip(head, row)) for row in rows]


def drawn(browse, path):
    done = browse(path, "--dump-dom")
    errors = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    page = Page(done.stdout)
    assert page.body.get("data-drawn") == "yes" and not errors, done.stderr[-3000:]
    return page


def colours(path):
    """How many pixels of each colour a PNG of 8 bits a channel has."""
    data, at, body = open(path, "rb").read(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        chunk = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, form = struct.unpack(">IIBB", chunk[:10])
        elif kind == b"IDAT":
            body += chunk
        at += length + 12
    step = {2: 3, 6: 4}[form]
    assert depth == 8
    raw, before, count = zlib.decompress(body), bytearray(width * step), {}
    for y in range(height):
        start = y * (width * step + 1)
        how, line = raw[start], bytearray(raw[start + 1:start + 1 + width * step])
        for x in range(width * step):
            left = line[x - step] if x >= step else 0
            above, corner = before[x], before[x - step] if x >= step else 0
            if how == 1:
                line[x] = (line[x] + left) & 255
            elif how == 2:
                line[x] = (line[x] + above) & 255
            elif how == 3:
                line[x] = (line[x] + (left + above) // 2) & 255
            elif how == 4:
                near = min((abs(above - corner), 0, left), (abs(left - corner), 1, above),
                           (abs(left + above - 2 * corner), 2, corner))[2]
                line[x] = (line[x] + near) & 255
        for x in range(0, width * step, step):
            one = tuple(line[x:x + 3])
            count[one] = count.get(one, 0) + 1
        before = line
    return count


BACKS = {"light": (255, 255, 255), "dark": (0x14, 0x17, 0x1a)}


def screenshot(browse, path, scheme):
    picture = "%s-%s.png" % (path, scheme)
    browse(path, "--screenshot=" + picture, "--window-size=1000,900", "--hide-scrollbars",
           "--blink-settings=preferredColorScheme=%d" % (1 if scheme == "light" else 0))
    return colours(picture)


def report(cluster, *options, name="report.html", **more):
    path = cluster.path(name)
    cluster.run(["ocsctl", "report", "--fabric", cluster.yaml, "--html", path, *options], **more)
    return path


def test_the_page_shows_jobs_faults_and_what_waits(pod, browse):
    job = pod.sbatch("--shape=8x4x2")
    plain = pod.sbatch("-N1", "-n1")
    pod.running(job)
    pod.running(plain)
    taken = pod.placement(job)["cubes"]
    other = [cube for cube in ("c0", "c1", "c2", "c3") if cube not in taken][0]
    pod.ocsctl("drain", "cube", other, "--reason", "</script><b>dust")
    waits = pod.sbatch("--shape=8x8x4")
    pod.until(lambda: "needs" in pod.job(waits).get("Reason", ""), 30, "a reason")
    try:
        page = drawn(browse, report(pod))
        titles = [cell.get("title", "") for cell in page.cells]
        of_job = [title for title in titles if "job %d," % job in title]
        assert len(of_job) == len(pod.placement(job)["xpus"]) // 4, titles
        assert len([title for title in titles if title.endswith(": drained")]) == 16, titles
        assert page.cubes == ["c0", "c1", "c2", "c3"]
        known = json.loads(pod.out(["ocsctl", "map", "--fabric", pod.yaml, "--json"]))
        assert page.facts["nodes"] == str(len(known["nodes"])) == str(len(page.cells))
        assert page.facts["jobs with circuits"] == "1" and page.facts["jobs waiting"] == "1"
        assert page.facts["switches up"] == "%d of %d" % ((len(known["switches"]),) * 2)
        row, = page.rows("Jobs with circuits")
        assert row["Job"] == str(job) and row["Shape"] == "8x4x2" and row["User"] == "root" \
            and row["Circuits"] == str(len(pod.placement(job)["circuits"])), row
        row, = page.rows("Waiting")
        assert row["Job"] == str(waits) and row["Why"].startswith("needs"), row
        row, = [row for row in page.rows("Out of service") if row["Name"] == other]
        assert row["Reason"] == "</script><b>dust", row
        assert len(page.rows("Switches")) == len(known["switches"])
    finally:
        pod.ocsctl("resume", "cube", other)


def test_it_needs_nothing_else_and_is_drawn_light_and_dark(pod, browse):
    job = pod.sbatch("--shape=4x4x4")
    pod.running(job)
    path = report(pod)
    text = open(path).read()
    assert not re.findall(r"""(?:src|href)\s*=|https?://(?!www\.w3\.org/2000/svg)""", text)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    for scheme, back in BACKS.items():
        count = screenshot(browse, path, scheme)
        assert max(count, key=count.get) == back, (scheme, sorted(count.items(), key=lambda one: -one[1])[:4])
        # hsl(0 60% 52%): 16 cells of 15 x 15, rounded at the corners
        assert count.get((206, 59, 59), 0) > 16 * 200, (scheme, sorted(count.items(), key=lambda one: -one[1])[:9])


def test_pictures_of_simulators_are_drawn_dark(browse, tmp_path):
    """On the ground of the report, with texts that stand out from it."""
    bins, back = os.path.join(os.environ["OCS_STAGE"], "bin"), BACKS["dark"]
    fabric = "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1"
    for words in (["ocs-netsim", "--model", "bert", "--fabric", "topoopt servers:8 degree:4 rate:100G", "--svg", "step"],
                  ["ocs-sim", "-p", "best", "-f", fabric, "--workload", "tpu-v4", "--hours", "100", "--svg", "sim"],
                  ["ocsctl", "advise", "fabric", "resnet50", "--servers", "2", "--html", "advice.html"]):
        subprocess.run([os.path.join(bins, words[0]), *words[1:]], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    for name in ("step-timeline.svg", "sim-utilisation.svg", "sim-cubes.svg", "sim-day.svg", "advice.html"):
        count = screenshot(browse, str(tmp_path / name), "dark")
        assert count.get(back, 0) > 100000, (name, sorted(count.items(), key=lambda one: -one[1])[:4])
        # what lies beside a picture is white
        far = sum(n for one, n in count.items() if one != BACKS["light"] and max(abs(a - b) for a, b in zip(one, back)) > 150)
        assert far > 300, (name, far)


def test_it_is_written_again_and_again(pod):
    path = pod.path("again.html")
    process = subprocess.Popen(pod.enter(["ocsctl", "report", "--fabric", pod.yaml, "--html", path, "--watch=1"]),
                               env=pod.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        pod.until(lambda: os.path.exists(path), 20, "the page")
        job = pod.sbatch("--shape=2x2x2")
        pod.running(job)
        pod.until(lambda: '"job":%d' % job in open(path).read(), 20, "the job in the page")
        text = open(path).read()
        assert '<meta http-equiv="refresh" content="1">' in text and text.endswith("</html>\n")
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def secret(make_cluster):
    cluster = make_cluster(tile=(4, 4, 1), delay_ms=1, config={"PrivateData": "jobs"})
    yield cluster
    cluster.stop()


def test_private_data_stays_private(secret, browse):
    job = secret.sbatch("--shape=4x4x4")
    secret.running(job)
    waits = secret.sbatch("--shape=16x4x4")
    secret.until(lambda: secret.job(waits).get("Reason", "None") != "None", 30, "a reason")
    secret.out(["scontrol", "create", "reservation", "ReservationName=mine", "Nodes=n15", "Users=daemon", "StartTime=now",
                "Duration=60", "Flags=ignore_jobs"])
    try:
        path = report(secret)
        page, text = drawn(browse, path), open(path).read()
        assert '"user"' not in text and '"job"' not in text and '"who"' not in text and "daemon" not in text, text[-4000:]
        assert not page.rows("Jobs with circuits") and not page.rows("Waiting")
        assert any("PrivateData" in note for note in page.notes), page.notes
        assert page.facts["in use"] == "4" and "jobs waiting" not in page.facts, page.facts
        row, = page.rows("Reservations")
        assert row["Name"] == "mine" and not row["For"], row
        whole = report(secret, "--private", name="private.html")
        assert stat.S_IMODE(os.stat(whole).st_mode) == 0o600
        page = drawn(browse, whole)
        assert [row["Job"] for row in page.rows("Jobs with circuits")] == [str(job)]
        assert [row["For"] for row in page.rows("Reservations")] == ["daemon"]
    finally:
        secret.out(["scontrol", "delete", "reservation", "mine"])
        secret.cancel_all()


def test_a_user_sees_his_own_jobs_and_no_others(secret, browse):
    """PrivateData=jobs: with --private, too, which shows what the one who asks may see."""
    jobs = {user: secret.sbatch("--shape=4x4x4", user=user) for user in (None, "nobody")}
    for job in jobs.values():
        secret.running(job)
    waits = secret.sbatch("--shape=16x4x4")
    secret.until(lambda: secret.job(waits).get("Reason", "None") != "None", 30, "a reason")
    try:
        for option, own in ((), []), (("--private",), [str(jobs["nobody"])]):
            path = report(secret, *option, name="out/user.html", user="nobody")
            page, text = drawn(browse, path), open(path).read()
            assert [row["Job"] for row in page.rows("Jobs with circuits")] == own, text[-4000:]
            assert not page.rows("Waiting") and page.facts["in use"] == "8", page.facts
            assert not re.search(r'"job":(%d|%d)\b' % (jobs[None], waits), text) and '"user":"root"' not in text, text[-4000:]
            os.unlink(path)
    finally:
        secret.cancel_all()


def test_private_reservations_are_left_out(pod, browse):
    pod.out(["scontrol", "create", "reservation", "ReservationName=mine", "Nodes=n15", "Users=daemon", "StartTime=now",
             "Duration=60"])
    try:
        assert [row["Name"] for row in drawn(browse, report(pod)).rows("Reservations")] == ["mine"]
        fake = pod.path("bin-private")
        os.makedirs(fake, exist_ok=True)
        with open(fake + "/scontrol", "w") as out:
            out.write("#!/bin/sh\nreal=$(PATH=${PATH#*:} command -v scontrol)\n"
                      "[ \"$*\" != 'show config' ] || exec \"$real\" show config | sed 's/^PrivateData .*/PrivateData = reservations/'\n"
                      "exec \"$real\" \"$@\"\n")
        os.chmod(fake + "/scontrol", 0o755)
        path = report(pod, env={"PATH": fake + ":" + pod.environment()["PATH"]})
        page, text = drawn(browse, path), open(path).read()
        assert not page.rows("Reservations") and '"mine' not in text and page.facts["reserved"] == "1", text[-3000:]
    finally:
        pod.out(["scontrol", "delete", "reservation", "mine"])


def ring_between(section, names, count):
    """What the page has of a ring of NAMES with COUNT circuits between neighbours."""
    return [{"section": section, "a": min(pair), "b": max(pair), "count": count}
            for pair in zip(names, names[1:] + names[:1])]


def thousand_nodes(known):
    """Makes KNOWN, the data of a page, 512 nodes in cubes, 256 on rails and 256 in a region, all of them in jobs."""
    cubes, rails, region = (["%s%d" % (letter, i) for i in range(n)] for letter, n in (("c", 32), ("r", 256), ("e", 256)))
    jobs, nodes = [], []
    for i, cube in enumerate(cubes):
        jobs.append((100 + i, "pod", "4x4x4", [{"section": "pod", "a": cube, "b": cube, "count": 48}]))
        nodes += [{"node": "n%d" % (16 * i + k), "section": "pod", "cube": cube, "job": 100 + i} for k in range(16)]
    jobs.append((200, "rails", None, ring_between("rails", rails, 8)))
    nodes += [{"node": name, "section": "rails", "job": 200} for name in rails]
    # in a region every server of a block may have circuits to several others
    links = [{"section": "moe", "a": region[i], "b": region[(i + step) % 256], "count": 1}
             for i in range(256) for step in (1, 3, 9, 27)]
    jobs.append((300, "moe", None, links))
    nodes += [{"node": name, "section": "moe", "job": 300} for name in region]
    known["sections"] = [{"name": "pod", "kind": "torus", "cubes": cubes}, {"name": "rails", "kind": "rails", "cubes": []},
                         {"name": "moe", "kind": "region", "cubes": []}]
    known["jobs"] = [{"job": job, "user": "ann", "shape": shape, "state": "realised", "section": section,
                      "circuits": sum(link["count"] for link in links), "circuits_between": links}
                     for job, section, shape, links in jobs]
    known["nodes"] = [dict(node, state="busy") for node in nodes]


HOVER = """<script>
window.addEventListener("load", () => {
	const said = document.body.dataset, rows = [...document.querySelectorAll("tr[data-job]")];
	for (const job of ["100", "200", "300"]) {
		const row = rows.find((one) => one.dataset.job === job), begun = performance.now();
		row.dispatchEvent(new Event("mouseenter"));
		document.body.getBoundingClientRect();
		said["hover" + job] = performance.now() - begun;
		said["arcs" + job] = document.querySelectorAll("svg.links path").length;
		said["held" + job] = document.querySelectorAll(".cell.held").length;
		row.dispatchEvent(new Event("mouseleave"));
	}
	said.left = document.querySelectorAll("svg.links path").length;
});
</script>"""


def test_a_browser_draws_a_thousand_nodes_of_all_kinds(browse, tmp_path, pod):
    """The page of the pod with its data made larger: every node, job and circuit is there (run with -s for times)."""
    text = open(report(pod)).read()
    head, data, tail = re.split(r'(?<=id="data">)|(?=</script>\n<script>)', text, maxsplit=2)
    known = json.loads(data)
    thousand_nodes(known)
    watch = "<script>const begun = performance.now();</script>"
    said = "<script>document.body.getBoundingClientRect(); document.body.dataset.took = performance.now() - begun;</script>"
    path = str(tmp_path / "large.html")
    with open(path, "w") as out:
        out.write(head.replace("<body>", "<body>" + watch) + json.dumps(known) +
                  tail.replace("</body>", said + HOVER + "</body>"))
    page = drawn(browse, path)
    assert len(page.cells) == 1024 and page.facts["nodes"] == page.facts["in use"] == "1024"
    rows = {row["Job"]: row for row in page.rows("Jobs with circuits")}
    assert len(rows) == 34
    for job, nodes, circuits, arcs in (("100", 16, 48, 1), ("200", 256, 2048, 256), ("300", 256, 1024, 1024)):
        assert rows[job]["Nodes"] == str(nodes) and rows[job]["Circuits"] == str(circuits), rows[job]
        # on hover
        assert page.body["data-arcs" + job] == str(arcs) and page.body["data-held" + job] == str(nodes), page.body
    assert page.body["data-left"] == "0"
    print("%d kB, drawn and laid out in %s ms, on hover %s ms (%s arcs), %s ms (%s arcs)" % (
        os.path.getsize(path) // 1000, page.body["data-took"], page.body["data-hover200"], page.body["data-arcs200"],
        page.body["data-hover300"], page.body["data-arcs300"]))
