package tool

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the page shows is written to one file, which opens without a server and loads nothing. It
// asks nobody, either.
func TestExportInABrowser(t *testing.T) {
	c := startChromium(t)
	dir := t.TempDir()
	cluster, change, room, day, gang, quotas := filepath.Join(dir, "cluster.html"), filepath.Join(dir, "change.html"), filepath.Join(dir, "room.html"), filepath.Join(dir, "day.html"), filepath.Join(dir, "gang.html"), filepath.Join(dir, "quotas.html")
	for _, call := range [][]string{
		{"view", "-f", "testdata/stuck.yaml", "--simulate", "--export", cluster},
		{"view", "-f", "testdata/gang.yaml", "--expand", "--simulate", "--feature-gates", "GenericWorkload=true", "--export", gang},
		{"view", "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml", "--simulate", "--export", quotas},
		{"what-if", "-f", "testdata/stuck.yaml", "uncordon", "n3", "--html", change},
		{"fit", "-f", "testdata/stuck.yaml", "--nodes-like", "cpu=64,memory=256Gi", "--html", room},
		{"view", "--record", recorded(t), "--config", packed(t), "--export", day},
	} {
		if status, _, errs := called(call...); status == exitInvalid {
			t.Fatal(call, errs)
		}
	}
	c.size(1280, 900, "light")
	c.open("file://" + cluster)
	c.until(`location.hash === "#/" && document.querySelector(".lead")?.innerText.includes("17 pods wait")`)
	c.until(`document.querySelector("[aria-label=Connection]").innerText === "File"`)
	c.route("#/nodes")
	c.until(`document.querySelector("[aria-label=Map]").innerText === "4 nodes shown"`)
	c.route("#/queue?place=gated")
	c.until(`document.querySelectorAll("table[aria-label=Pods] tbody tr").length === 2`)
	c.route("#/pod/default/affinity")
	c.until(`document.querySelector("[aria-label=Verdict]")?.innerText.startsWith("Misconfigured: ")`)
	c.route("#/node/n3")
	c.until(`document.querySelector("table[aria-label=Resources]")`)
	c.route("#/decisions")
	c.until(`document.querySelectorAll("[role=log] li").length > 10`)
	c.route("#/pod/default/nobody")
	c.until(`document.querySelector("[role=alert]")?.innerText.includes("This file does not hold that")`)
	c.until(`!document.querySelector("[role=alert]").innerText.includes("It may be gone")`)
	c.route("#/node/constructor")
	c.until(`document.querySelector("[role=alert]")?.innerText.includes("This file does not hold that")`)
	c.open("file://" + gang)
	c.route("#/group/default/train")
	c.until(`document.querySelector("[aria-label=Group]")?.innerText === "0 of 3 pods placed, at least 3 at once."`)
	c.open("file://" + quotas)
	c.route("#/groups")
	c.until(`document.querySelector("table[aria-label=Quotas]")?.innerText.includes("web/web")`)
	c.open("file://" + change)
	c.until(`document.querySelector("[aria-label=Outcome]")?.innerText.startsWith("uncordon n3:")`)
	c.picture("what-if-file")
	c.open("file://" + room)
	c.until(`document.querySelector("main pre")?.innerText.includes("node")`)
	c.open("file://" + day)
	c.until(`document.querySelector("h1").innerText === "Replay" && document.querySelector("polyline")`)
	c.route("#/compare")
	c.until(`document.querySelectorAll("polyline.second").length === 5`)
	if n := c.eval(`performance.getEntriesByType("resource").length`); n != "0" {
		t.Errorf("the file loads %s others", n)
	}
	c.quiet()
}

// An export that is redacted has no name of the cluster, and one hash for one name. Keys of labels
// stay, as in a record.
func TestExportRedacted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	write(t, file, `
apiVersion: v1
kind: Node
metadata: {name: secretnode, labels: {team: secretvalue}, annotations: {note: secretnote}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: secretpod, namespace: secretspace, labels: {app: secretapp}}
spec:
  nodeSelector: {pool: secretpool}
  priorityClassName: system-node-critical
  containers: [{name: secretcontainer, image: secretimage, args: [secretarg], resources: {requests: {cpu: "1"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: secretother, namespace: secretspace}
spec:
  nodeName: secretnode
  containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
`)
	out := filepath.Join(t.TempDir(), "out.html")
	if status, _, errs := called("view", "-f", file, "--simulate", "--export", out, "--redact"); status != 0 {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`secret\w+`).FindAllString(string(text), -1) {
		t.Errorf("it has %s", name)
	}
	if !strings.Contains(string(text), `"redacted":true`) {
		t.Error("it does not say that it is redacted")
	}
	node := regexp.MustCompile(`"names":\["(x\w+)"\]`).FindSubmatch(text)
	if node == nil || strings.Count(string(text), string(node[1])) < 3 {
		t.Errorf("the node is %q", node)
	}
	for call, want := range map[string]string{
		"view -f " + file + " --redact":                         "--redact: needs --export",
		"view --export x --redact --daemon auto":                "--daemon: has no effect with --redact",
		"view --record " + t.TempDir() + " --export x --redact": "a record is redacted where it is made",
	} {
		if status, _, errs := called(strings.Fields(call)...); status != exitInvalid || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", call, status, errs)
		}
	}
}
