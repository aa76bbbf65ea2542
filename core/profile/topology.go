package profile

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// GroupTopology is not a plugin. It is the name in pluginConfig of the arguments that list the
// levels of the tree of domains in which pod groups are kept together.
const GroupTopology = "GroupTopology"

// mostLevels bounds the number of levels. The domains of each level may be tried in one cycle of a
// group.
const mostLevels = 16

// topologyArgs are the arguments of GroupTopology.
type topologyArgs struct {
	// Levels are keys of node labels, widest first.
	Levels []string `json:"levels"`

	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// topologyLevels returns the node label keys in the arguments of GroupTopology, widest first, or
// nil if there are no such arguments. The error lists every invalid or repeated key, and says if
// there are none or more than mostLevels.
func (c *Config) topologyLevels() ([]string, error) {
	if !slices.ContainsFunc(c.Args, func(a Args) bool { return a.Plugin == GroupTopology }) {
		return nil, nil
	}
	var args topologyArgs
	if err := c.decodeOwn(GroupTopology, &args); err != nil {
		return nil, err
	}
	var errs []error
	if n := len(args.Levels); n == 0 || n > mostLevels {
		errs = append(errs, fmt.Errorf("args.levels of %s: Invalid value: %d levels: must be from 1 to %d", GroupTopology, n, mostLevels))
	}
	for i, key := range args.Levels {
		at := fmt.Sprintf("args.levels[%d] of %s: Invalid value: %q: ", i, GroupTopology, key)
		for _, why := range validation.IsQualifiedName(key) {
			errs = append(errs, errors.New(at+why))
		}
		if slices.Contains(args.Levels[:i], key) {
			errs = append(errs, errors.New(at+"is there twice"))
		}
	}
	return args.Levels, errors.Join(errs...)
}
