package machine

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// unlistedKinds holds the kinds whose objects cannot be listed, and why. A pod is not
// decided on while a plugin that has a say about it does not see what it needs.
type unlistedKinds map[object.Kind]error

// hides returns why the plugin does not see all that it needs, nil if it does.
func (l unlistedKinds) hides(pl *framework.Plugin) error {
	if len(l) == 0 || pl.Reads.Optional {
		return nil
	}
	for _, kind := range pl.Reads.Kinds {
		if err, is := l[kind]; is {
			return fmt.Errorf("the objects of the kind %s cannot be listed: %w", kind, err)
		}
	}
	return nil
}

// undecidable returns an error status if a plugin of the profile has a say about the pod
// and does not see what it needs, else nil.
func (l unlistedKinds) undecidable(t *table.Table, of *profile.Profile, p *object.Pod) *decision.Status {
	if len(l) == 0 {
		return nil
	}
	for _, pl := range of.PreFilter {
		if err := l.hides(pl); err != nil && !pl.PreFilter(t, p).Skip {
			return attribute(&decision.Status{Code: decision.Error, Err: err}, "PreFilter", pl.Name)
		}
	}
	return nil
}
