package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/berth-scheduler/berth/core/framework"
)

// budgetArgs are the arguments of PreemptionBudgets.
type budgetArgs struct {
	// Strict is set if preemption may never violate a PodDisruptionBudget.
	Strict bool `json:"strict"`

	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// strictBudgets reports whether the arguments of PreemptionBudgets set Strict. An error means that
// they cannot be decoded.
func (c *Config) strictBudgets() (bool, error) {
	var args budgetArgs
	err := c.decodeOwn(framework.PreemptionBudgets, &args)
	return args.Strict, err
}

// decodeOwn decodes the pluginConfig entry of one of Berth's own settings, such as GroupTopology,
// into args. Without an entry args stays as it is. A field that args does not have is an error.
func (c *Config) decodeOwn(name string, args any) error {
	raw, _ := c.args(name).(json.RawMessage)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(args); err != nil && err != io.EOF {
		return fmt.Errorf("args of %s: %w", name, err)
	}
	return nil
}
