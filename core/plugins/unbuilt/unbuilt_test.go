package unbuilt

import (
	"testing"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/plugins/plugintest"
)

func TestOnlyPodsThatUseThePluginAreRejected(t *testing.T) {
	tb := plugintest.Table(&object.Node{Name: "a"})
	plain := &object.Pod{}
	for _, c := range Constraints() {
		pl := New(c)
		if got := pl.PreFilter(tb, plain); !got.Skip || got.Status != nil {
			t.Errorf("%s: a plain pod gets %+v", c.Plugin, got)
		}
		for _, other := range Constraints() {
			user := &object.Pod{Unbuilt: []string{other.Plugin}}
			rejected := plugintest.Ask(t, pl, tb, user).Rejected != ""
			if rejected != (other.Plugin == c.Plugin) {
				t.Errorf("%s: a pod that uses %s: rejected %v", c.Plugin, other.Plugin, rejected)
			}
			if (string(pl.Part(nil, user)) == string(pl.Part(nil, plain))) == rejected {
				t.Errorf("%s: part %q", c.Plugin, string(pl.Part(nil, user)))
			}
		}
	}
}

func TestReason(t *testing.T) {
	for _, c := range Constraints() {
		if c.Plugin != names.VolumeBinding {
			continue
		}
		got := plugintest.Ask(t, New(c), plugintest.Table(), &object.Pod{Unbuilt: []string{c.Plugin}}).Rejected
		want := "UnschedulableAndUnresolvable: Berth does not have the plugin VolumeBinding yet and this pod has persistent volume claims"
		if got != want {
			t.Errorf("got %q", got)
		}
	}
}
