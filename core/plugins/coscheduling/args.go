package coscheduling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Args are the plugin's arguments as JSON, nil for none.
type Args struct {
	// Peer are those of the plugin in sigs.k8s.io/scheduler-plugins.
	Peer json.RawMessage
	// Labels and Status are Berth's own, which stand under the names CoschedulingLabels and
	// CoschedulingStatus, so that the same configuration runs with the plugin of
	// scheduler-plugins.
	Labels, Status json.RawMessage
}

// RawArgs returns the arguments for a hosted plugin that is named Coscheduling and runs instead of
// this one.
func (a Args) RawArgs() json.RawMessage { return a.Peer }

// peerArgs are the arguments that the plugin of sigs.k8s.io/scheduler-plugins has.
type peerArgs struct {
	// PermitWaitingTimeSeconds is how long a pod that has a node waits in Permit for the
	// others of its group; nil: 60.
	PermitWaitingTimeSeconds *int64 `json:"permitWaitingTimeSeconds,omitempty"`
	// PodGroupBackoffSeconds and PodGroupRejectPercentage say there when a group that waits in
	// Permit is rejected, and for how long. Here no group waits.
	PodGroupBackoffSeconds   *int64 `json:"podGroupBackoffSeconds,omitempty"`
	PodGroupRejectPercentage *int32 `json:"podGroupRejectPercentage,omitempty"`

	kind
}

// labelArgs are the arguments of CoschedulingLabels.
type labelArgs struct {
	// Prefixes are those of the labels PREFIX/name and PREFIX/min-available, which make groups
	// without a PodGroup.
	Prefixes []string `json:"prefixes,omitempty"`

	kind
}

// statusArgs are the arguments of CoschedulingStatus.
type statusArgs struct {
	// Write says whether Berth writes the status of PodGroups; nil: it does. While the
	// controller of scheduler-plugins runs, one of the two must not.
	Write *bool `json:"write,omitempty"`

	kind
}

// kind is what any plugin's arguments may name besides. It is not read.
type kind struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// parse returns how long a pod may wait in Permit, and how labels put pods into groups. The error
// lists all values that are not valid.
func (a Args) parse() (wait time.Duration, rules *framework.GroupRules, err error) {
	var peer peerArgs
	var own labelArgs
	var status statusArgs
	err = errors.Join(decode("args", a.Peer, &peer), decode("args of CoschedulingLabels", a.Labels, &own), decode("args of CoschedulingStatus", a.Status, &status))
	if err != nil {
		return 0, nil, err
	}
	seconds := int64(60)
	if s := peer.PermitWaitingTimeSeconds; s != nil {
		seconds = *s
	}
	var errs []error
	if seconds < 0 {
		errs = append(errs, fmt.Errorf("args.permitWaitingTimeSeconds: Invalid value: %d: must not be negative", seconds))
	}
	if s := peer.PodGroupBackoffSeconds; s != nil && *s < 0 {
		errs = append(errs, fmt.Errorf("args.podGroupBackoffSeconds: Invalid value: %d: must not be negative", *s))
	}
	if p := peer.PodGroupRejectPercentage; p != nil && (*p < 0 || *p > 100) {
		errs = append(errs, fmt.Errorf("args.podGroupRejectPercentage: Invalid value: %d: must be from 0 to 100", *p))
	}
	for i, prefix := range own.Prefixes {
		at := fmt.Sprintf("args.prefixes[%d] of CoschedulingLabels: Invalid value: %q: ", i, prefix)
		for _, why := range validation.IsDNS1123Subdomain(prefix) {
			errs = append(errs, errors.New(at+why))
		}
		switch {
		case prefix == object.SchedulerPlugins:
			errs = append(errs, errors.New(at+"its groups are PodGroups"))
		case slices.Contains(own.Prefixes[:i], prefix):
			errs = append(errs, errors.New(at+"is there twice"))
		}
	}
	const most = int64(365 * 24 * time.Hour / time.Second)
	return time.Duration(min(seconds, most)) * time.Second, &framework.GroupRules{Labels: own.Prefixes, LeaveStatus: status.Write != nil && !*status.Write}, errors.Join(errs...)
}

// decode decodes the JSON into into, if there is any. A field that into does not have is an error;
// errors begin with name.
func decode(name string, raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
