package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/fix"
)

// importantIsPlaced is what happens before anybody reads an answer: one of the stuck pods takes
// the place of another pod.
var importantIsPlaced = []fix.Change{
	{Kind: "Pod", Name: "db-0", Delete: true},
	{Kind: "Pod", Name: "important", Patch: []fix.Op{{Op: "add", Path: "/spec/nodeName", Value: "n1"}}},
}

// Each of the twenty stuck pods is mended from its answer alone: the first fix is
// carried out, and the pod would be placed. The two that need no fix have none: another
// scheduler's pod, and one that others make room for already.
func TestStuckPodsAreMended(t *testing.T) {
	noFix := []string{"other", "important"}
	mended := 0
	for _, pod := range stuckPods(t) {
		_, out, errs := berth("", "why", "-f", "testdata/stuck.yaml", pod, "-o", "json")
		if errs != "" {
			t.Errorf("%s: stderr %q", pod, errs)
		}
		var a struct {
			Verdict string
			Fixes   []fix.Fix
		}
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(noFix, pod) {
			if len(a.Fixes) > 0 {
				t.Errorf("%s: %s, and %d fixes", pod, a.Verdict, len(a.Fixes))
			}
			continue
		}
		if len(a.Fixes) == 0 {
			t.Errorf("%s: %s, and no fix", pod, a.Verdict)
			continue
		}
		f := &a.Fixes[0]
		t.Logf("%s: %s: %s: %s", pod, a.Verdict, f.Summary, f.Then.Node)
		if code, out, errs := berth("", "why", "-f", mend(t, slices.Concat(importantIsPlaced, f.Changes, f.More)), pod); code != exitPlaced {
			t.Errorf("%s: after %q: exit status %d: %s%s", pod, f.Summary, code, out, errs)
			continue
		}
		mended++
	}
	if mended != 18 {
		t.Errorf("%d pods are mended, want 18", mended)
	}
}

// stuckPods are the names of the stuck pods, in the order of the file.
func stuckPods(t *testing.T) (pods []string) {
	data, err := os.ReadFile("testdata/stuck.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, stuck := strings.CutPrefix(line, "- {apiVersion: v1, kind: Pod, metadata: {name: "); stuck {
			pods = append(pods, rest[:strings.IndexAny(rest, ",}")])
		}
	}
	return pods
}

// mend writes the cluster of the stuck pods with the changes to a file.
func mend(t *testing.T, changes []fix.Change) (file string) {
	data, err := os.ReadFile("testdata/stuck.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []json.RawMessage
	for _, text := range strings.Split(string(data), "\n---\n") {
		object, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Kind  string
			Items []json.RawMessage
		}
		if err := json.Unmarshal(object, &list); err != nil {
			t.Fatal(err)
		}
		if list.Kind == "List" {
			objects = append(objects, list.Items...)
		} else {
			objects = append(objects, object)
		}
	}
	for i := range changes {
		objects = changed(t, objects, &changes[i])
	}
	file = filepath.Join(t.TempDir(), "mended.json")
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// changed is the objects after the change.
func changed(t *testing.T, objects []json.RawMessage, c *fix.Change) []json.RawMessage {
	if c.Create != nil {
		made, err := json.Marshal(c.Create)
		if err != nil {
			t.Fatal(err)
		}
		return append(objects, made)
	}
	at := slices.IndexFunc(objects, func(o json.RawMessage) bool {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		return json.Unmarshal(o, &head) == nil && head.Kind == c.Kind && head.Metadata.Name == c.Name
	})
	if at < 0 {
		t.Fatalf("there is no %s %s to change", c.Kind, c.Name)
	}
	if c.Delete {
		return slices.Delete(objects, at, at+1)
	}
	text, err := json.Marshal(c.Patch)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	if objects[at], err = patch.Apply(objects[at]); err != nil {
		t.Fatal(err)
	}
	return objects
}

// To delete a replica of the pod's own controller is no fix: it would be replaced, and
// wait instead.
func TestNoFixByDeletingAReplica(t *testing.T) {
	const cluster = `
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-1, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r, controller: true}]},
 spec: {nodeName: n1, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-2, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: OWNER, uid: OWNER, controller: true}]},
 spec: {containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}}
`
	for owner, want := range map[string]bool{"web": false, "other": true} {
		_, out, err := berth(strings.ReplaceAll(cluster, "OWNER", owner), "why", "web-2", "-f", "-", "--expand=false")
		if got := strings.Contains(out, "kubectl delete pod web-1"); got != want || !strings.Contains(out, "didn't have free ports") {
			t.Errorf("a pod of ReplicaSet %s: %s%s", owner, out, err)
		}
	}
}
