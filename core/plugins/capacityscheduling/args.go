package capacityscheduling

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Args are the plugin's arguments. The plugin of sigs.k8s.io/scheduler-plugins has none.
type Args struct {
	// Unlisted says what counts for a resource that a min or max does not name: "zero", as in
	// scheduler-plugins (quota.Ask), or "", which is no bound.
	Unlisted string `json:"unlisted,omitempty"`

	// APIVersion and Kind may stand in any plugin's arguments.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// parse returns the arguments; raw is empty for none. An unknown field or value is an error.
func parse(raw json.RawMessage) (Args, error) {
	var args Args
	if len(raw) == 0 {
		return args, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&args); err != nil && err != io.EOF {
		return args, fmt.Errorf("args: %w", err)
	}
	if args.Unlisted != "" && args.Unlisted != "zero" {
		return args, fmt.Errorf("args.unlisted: Unsupported value: %q: supported values: \"zero\"", args.Unlisted)
	}
	return args, nil
}
