package machine

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// kindUnlisted records that objects of a kind cannot be listed. Gated pods run PreEnqueue
// again, as the lack of these objects may gate them.
func (m *Machine) kindUnlisted(e KindUnlisted) {
	m.unlisted[e.Kind] = e.Err
	m.queue.MoveAllToActiveOrBackoff(m.now, anythingChanged, nil)
}

// kindListed records that all objects of the kind are known.
func (m *Machine) kindListed(kind object.Kind) {
	delete(m.unlisted, kind)
	m.queue.MoveAllToActiveOrBackoff(m.now, anythingChanged, nil)
}

var anythingChanged = &framework.Event{Resource: framework.WildCard, ActionType: framework.All}

// blind returns which kind that the plugin needs was not listed; nil: it sees all.
func (m *Machine) blind(pl *framework.Plugin) error {
	if len(m.unlisted) == 0 || pl.OptionalReads {
		return nil
	}
	for _, kind := range pl.Reads {
		if err, is := m.unlisted[kind]; is {
			return fmt.Errorf("the objects of the kind %s cannot be listed: %w", kind, err)
		}
	}
	return nil
}

// undecidable fails an attempt for a pod that a plugin has a say about which
// does not see what it needs.
func (m *Machine) undecidable(a *attempt) *decision.Status {
	if len(m.unlisted) == 0 {
		return nil
	}
	for _, pl := range a.profile.PreFilter {
		if err := m.blind(pl); err != nil && !pl.PreFilter(m.table, a.pod).Skip {
			return attribute(&decision.Status{Code: decision.Error, Err: err}, "PreFilter", pl.Name)
		}
	}
	return nil
}
