package whatif_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/sim/whatif"
)

// deployment is one whose pods request a CPU.
func deployment(name string, replicas int) string {
	return fmt.Sprintf("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec: {replicas: %d, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}\n", name, replicas)
}

// statefulSet is one whose pods request a CPU and have a claim of a volume on one node.
func statefulSet(replicas int) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: %d
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOncePod], storageClassName: now, resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: now}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
`, replicas)
}

const quota = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: default}\nspec: {hard: {pods: %d}}\n"

// scale asks up to how many replicas fit, and returns the answer in a line.
func scale(t *testing.T, text, words, what string) string {
	t.Helper()
	set, in := cluster(t, text)
	after, err := whatif.Parse(strings.Fields(words))
	if err != nil {
		t.Fatal(err)
	}
	r, err := whatif.Scale(set, in, after, what, whatif.Options{})
	if err != nil {
		return err.Error()
	}
	nearest := ""
	if r.Nearest != nil {
		for name, q := range r.Nearest.Lacks {
			nearest += fmt.Sprintf("; %s lacks %s %s", r.Nearest.Node, q.String(), name)
		}
	}
	return fmt.Sprintf("%d now %d %v; %s%s", r.Fits, r.Now, r.Nodes, r.Stops, nearest)
}

// So many replicas of a workload are counted as have a place at the same time, those that are
// there included, and what stops the next is said.
func TestScale(t *testing.T) {
	two := node("a", "") + node("b", "")
	const full = "0/2 nodes are available: 2 Insufficient cpu."
	priority := func(name, node string, value int) string { // of another ReplicaSet
		return strings.NewReplacer("uid: r,", "uid: s,", "name: web,", "name: other,", "app: web", "app: other").Replace(pod(name, node, 3, fmt.Sprintf("priority: %d, ", value)))
	}
	for name, c := range map[string]struct{ text, after, what, want string }{
		"none runs yet":                     {two + deployment("web", 3), "", "deployment/web", "8 now 3 map[a:4 b:4]; " + full + "; a lacks 1 cpu"},
		"some run":                          {two + pod("p", "a", 2, "") + pod("q", "", 2, ""), "", "rs/web", "4 now 2 map[a:2 b:2]; " + full + "; a lacks 2 cpu"},
		"with none":                         {two + deployment("web", 0), "", "deployment/web", "8 now 0 map[a:4 b:4]; " + full + "; a lacks 1 cpu"},
		"fewer than it wants":               {node("a", "") + deployment("web", 6), "", "default/deployment/web", "4 now 6 map[a:4]; 0/1 nodes are available: 1 Insufficient cpu.; a lacks 1 cpu"},
		"others come first":                 {two + deployment("web", 3) + priority("p", "", 0), "", "deployment/web", "5 now 3 map[a:1 b:4]; " + full + "; a lacks 1 cpu"},
		"nobody is evicted for it":          {node("a", "") + priority("p", "a", -1) + deployment("web", 1), "", "deployment/web", "1 now 1 map[a:1]; 0/1 nodes are available: 1 Insufficient cpu.; a lacks 1 cpu"},
		"a victim of others comes again":    {two + priority("v", "a", 0) + strings.Replace(priority("q", "", 9), "priority: 9,", "priority: 9, nodeSelector: {kubernetes.io/hostname: a},", 1) + deployment("web", 1), "", "deployment/web", "2 now 1 map[a:1 b:1]; " + full + "; a lacks 1 cpu"},
		"nobody is evicted for a number":    {node("a", "") + priority("p", "a", -1) + statefulSet(1), "", "sts/db", "1 now 1 map[a:1]; 0/1 nodes are available: 1 Insufficient cpu.; a lacks 1 cpu"},
		"after the loss of a zone":          {two + pod("p", "a", 2, "") + pod("q", "b", 2, ""), "lose-zone a", "rs/web", "2 now 2 map[b:2]; 0/1 nodes are available: 1 Insufficient cpu.; b lacks 2 cpu"},
		"that comes with the changes":       {two, "apply " + write(t, deployment("web", 2)), "deployment/web", "8 now 2 map[a:4 b:4]; " + full + "; a lacks 1 cpu"},
		"after it is scaled":                {two + deployment("web", 2), "scale deployment/web=30", "deployment/web", "8 now 2 map[a:4 b:4]; " + full + "; a lacks 1 cpu"},
		"claims of its own":                 {two + statefulSet(2), "", "sts/db", "8 now 2 map[a:4 b:4]; " + full + "; a lacks 1 cpu"},
		"numbers with a gap":                {two + strings.NewReplacer("kind: ReplicaSet", "kind: StatefulSet", "name: web,", "name: db,", "app: web", "app: db").Replace(pod("db-2", "a", 1, "")) + statefulSet(2), "", "sts/db", "8 now 2 map[a:4 b:4]; " + full + "; a lacks 1 cpu"},
		"a quota":                           {two + deployment("web", 1) + fmt.Sprintf(quota, 3), "", "deployment/web", "3 now 1 map[a:2 b:1]; admission refuses it: ResourceQuota q allows pods 3 in all; 3 is used, and it takes 1 more"},
		"a quota, and numbers":              {two + statefulSet(1) + fmt.Sprintf(quota, 3), "", "sts/db", "3 now 1 map[a:2 b:1]; admission refuses it: ResourceQuota q allows pods 3 in all; 3 is used, and it takes 1 more"},
		"a quota that is used up":           {two + pod("p", "a", 1, "") + deployment("web", 1) + fmt.Sprintf(quota, 1), "", "deployment/web", "0 now 1 map[]; admission refuses it: ResourceQuota q allows pods 1 in all; 1 is used, and it takes 1 more"},
		"more than a lack of room":          {node("a", "spec: {unschedulable: true}\n") + deployment("web", 1), "", "deployment/web", "0 now 1 map[]; 0/1 nodes are available: 1 node(s) were unschedulable."},
		"a DaemonSet":                       {two, "", "ds/agent", "--scale: there is no default/daemonset/agent"},
		"a workload that is not there":      {two + deployment("web", 1), "", "deployment/wep", "--scale: there is no default/deployment/wep; did you mean default/deployment/web?"},
		"a change that cannot be made":      {two + deployment("web", 1), "drain c", "deployment/web", "--after: drain: no node is called c"},
		"a word that is neither":            {two, "", "web", "--scale: web: is no workload, such as deployment/web, and no such file is there"},
		"a template that makes no pods":     {two + strings.Replace(deployment("web", 1), "spec: {replicas", "spec: {paused: true, replicas", 1), "", "deployment/web", "--scale: deployment default/web: makes no pods: it is paused without any, or its template has no containers"},
		"a DaemonSet's number is its nodes": {two + strings.NewReplacer("kind: ReplicaSet", "kind: DaemonSet").Replace(pod("p", "a", 1, "")), "", "ds/web", "--scale: ds/web: a DaemonSet has a pod on each node"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := scale(t, c.text, c.after, c.what); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// All pods of a file are counted together: it fits as often as all of them have a place, and
// the DaemonSets in it run once.
func TestScaleOfFile(t *testing.T) {
	two := node("a", "") + node("b", "")
	bare := strings.Replace(pod("big", "", 2, ""), ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r, controller: true}]", "", 1)
	daemons := strings.Replace(strings.Replace(deployment("agent", 1), "Deployment", "DaemonSet", 1), "replicas: 1, ", "", 1)
	const full = "0/2 nodes are available: 2 Insufficient cpu."
	for name, c := range map[string]struct{ text, after, file, want string }{
		"a pod":                      {two, "", bare, "4 now 0 map[a:2 b:2]; " + full + "; a lacks 2 cpu"},
		"workloads and a pod":        {two, "", bare + deployment("front", 1) + statefulSet(1), "2 now 0 map[a:2 b:4]; " + full},
		"one pod too many":           {two, "", bare + deployment("front", 3), "1 now 0 map[a:2 b:2]; " + full},
		"DaemonSets":                 {two, "", deployment("web", 2) + daemons, "3 now 0 map[a:3 b:3]; " + full + "; a lacks 1 cpu"},
		"that is read already":       {two + deployment("web", 2), "", deployment("web", 2), "--scale: FILE: adds no pod that wants a node; name a workload that is there as deployment/web"},
		"after the loss of a zone":   {two, "lose-zone b", deployment("web", 2), "2 now 0 map[a:4]; 0/1 nodes are available: 1 Insufficient cpu.; a lacks 1 cpu"},
		"nothing that wants a node":  {two, "", node("c", ""), "--scale: FILE: adds no pod that wants a node; name a workload that is there as deployment/web"},
		"a quota":                    {two + fmt.Sprintf(quota, 5), "", deployment("web", 2), "2 now 0 map[a:2 b:2]; admission refuses it: ResourceQuota q allows pods 5 in all; 5 is used, and it takes 1 more"},
		"a quota that is too little": {two + fmt.Sprintf(quota, 1), "", deployment("web", 2), "0 now 0 map[]; default/web-1-1: admission refuses it: ResourceQuota q allows pods 1 in all; 1 is used, and it takes 1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, c.file)
			got := strings.ReplaceAll(scale(t, c.text, c.after, file), file, "FILE")
			if got != c.want && !strings.HasPrefix(got, c.want+"; ") {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A count whose time is up says so, with what fits until then.
func TestScaleEnds(t *testing.T) {
	text := deployment("web", 1)
	for i := range 100 {
		text += node(fmt.Sprint("n", i), "")
	}
	set, in := cluster(t, text)
	in.Stop = func() bool { return true }
	r, err := whatif.Scale(set, in, nil, "deployment/web", whatif.Options{})
	if err != nil || r.Fits == 0 || r.Fits >= 400 || r.Stops != "it was not tried: the time was up before all pods were tried" {
		t.Errorf("%+v, %v", r, err)
	}
}
