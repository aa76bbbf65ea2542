package daemon

import (
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
)

// A good configuration is refused by a shadow, while a record is written, and if a
// plugin of it reads objects that are not watched, or puts pods into other groups.
func TestRefusal(t *testing.T) {
	reads := []*profile.Profile{{Plugins: map[string]*framework.Plugin{"P": {Reads: framework.Reads{Kinds: []object.Kind{object.CSINodes}}}}}}
	for why, tc := range map[string]struct {
		daemon *Daemon
		next   []*profile.Profile
	}{
		"a shadow cannot reload the configuration": {&Daemon{shadow: true}, nil},
		"a record holds one configuration":         {&Daemon{recorded: true}, nil},
		"they are not watched":                     {&Daemon{profiles: reads}, reads},
		"a change of Coscheduling":                 {&Daemon{profiles: reads}, []*profile.Profile{{Groups: &framework.GroupRules{Labels: []string{"s"}}}}},
		"":                                         {&Daemon{watched: []object.Kind{object.CSINodes}, profiles: reads}, reads},
	} {
		d := tc.daemon
		d.config.Store(config.Default())
		switch err := d.refusal(config.Default(), tc.next); {
		case (err == nil) != (why == ""), err != nil && !strings.Contains(err.Error(), why):
			t.Errorf("got %v, want %q", err, why)
		}
	}
}
