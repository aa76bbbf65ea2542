package conform

import (
	"strings"
	"testing"
)

// kube-scheduler's own plugins, hosted by Berth in place of the native ones, decide as
// they do in kube-scheduler: all together in every mix, and one by one beside native
// plugins.
func TestInTreePluginsAreHosted(t *testing.T) {
	play := func(mixes []string, last uint64, names ...string) {
		for _, mix := range mixes {
			counts, apart, err := playAll(mix, nil, 1, last, Hosted(names...), func(int) {})
			if err != nil {
				t.Fatalf("%s: %v", mix, err)
			}
			for _, d := range apart {
				t.Errorf("%s hosted, %s, seed %d: %s", names, mix, d.World.Seed, strings.Join(d.Diffs, "; "))
			}
			if counts.Decisions == 0 {
				t.Errorf("%s: nothing was decided", mix)
			}
		}
	}
	play(allMixes(), 4, hostable...)
	for _, name := range hostable {
		play([]string{"all", "volumes", "interpod-preemption"}, 2, name)
	}
}

// Only plugins that can be hosted can be asked for.
func TestHostedNames(t *testing.T) {
	if all, err := hostedNames("all"); err != nil || len(all) != len(hostable) {
		t.Errorf("all: %v, %v", all, err)
	}
	if _, err := hostedNames("NodeName,VolumeBinding"); err == nil || !strings.Contains(err.Error(), `no plugin "VolumeBinding"`) {
		t.Errorf("got %v", err)
	}
}
