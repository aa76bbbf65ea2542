package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// why podgroup/NAME says at which level a gang must be, and how far its best domain is; with room,
// where it would be placed; what is wrong with its levels; and where its pods are.
func TestWhyOfAGroupInATree(t *testing.T) {
	written, err := os.ReadFile("testdata/racks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const placed = "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: old, namespace: default, labels: {scheduling.x-k8s.io/pod-group: train}}\n" +
		"spec: {nodeName: node-1, containers: [{name: c, image: i}]}\n"
	for change, want := range map[[2]string][]string{
		{"", ""}: {"\nTopology: its pods must be in one rack; it fits in no rack; best rack a/r1: 2 of 3 fit\n",
			"and 2 of 3 fit: default/train-2 has room only outside the topology domain of the others\n"},
		{"cpu: 4, memory: 16Gi, pods: 10}}\n---\napiVersion: scheduling", "cpu: 8, memory: 16Gi, pods: 10}}\n---\napiVersion: scheduling"}: {
			"\nTopology: its pods must be in one rack; 3 that wait fit in rack a/r2 now\n", "3 pods, fitting now"},
		{"required-topology", "preferred-topology"}: {"\nTopology: its pods are to be in one rack if possible; 3 that wait fit in zone a now\n"},
		{"example.com/rack}\nspec", "example.com/row}\nspec"}: {
			"\nTopology: its annotation berth.dev/required-topology is \"example.com/row\", which is no level of GroupTopology: ", "is not valid: its annotation berth.dev/required-topology is"},
		{"cpu: 3}}\n", "cpu: 3}}\n" + placed}: {"\nTopology: its pods must be in one rack; 1 are in rack a/r1; 2 that wait fit in rack a/r1 now\n"},
	} {
		text := strings.Replace(string(written), change[0], change[1], 1)
		if text == string(written) && change[0] != "" {
			t.Fatalf("%q is not there", change[0])
		}
		file := filepath.Join(t.TempDir(), "racks.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, out, errs := berth("", "why", "-f", file, "--config", "testdata/racks-config.yaml", "podgroup/train")
		for _, part := range want {
			if !strings.Contains(out, part) {
				t.Errorf("%q: want %q in\n%s%s", change, part, out, errs)
			}
		}
	}
}

// simulate names the same rack as the best as why does, and says that the nodes are those of this
// rack where it counts them.
func TestBestRack(t *testing.T) {
	_, out, errs := berth("", "simulate", "-f", "testdata/racks.yaml", "--config", "testdata/racks-config.yaml")
	for _, want := range []string{"it fits in no rack; best rack a/r1: 2 of 3 fit, ", "\n    0/2 nodes of rack a/r1 are available: 2 Insufficient cpu.\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s%s", want, out, errs)
		}
	}
}
