package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/edge/fix"
)

// objectCommand patches an object that no controller makes, or makes it anew where the API
// server lets nobody change that of it. What controllers do of themselves is left out.
func objectCommand(c *fix.Change) []string {
	patch := slices.DeleteFunc(slices.Clone(c.Patch), func(op fix.Op) bool { return strings.HasPrefix(op.Path, "/status/") })
	of := strings.ToLower(c.Kind) + " " + word(c.Name)
	if c.Namespace != "" {
		of += " -n " + word(c.Namespace)
	}
	fixed := c.Kind == "ResourceClaim" || c.Kind == "PersistentVolumeClaim" && slices.ContainsFunc(patch, func(op fix.Op) bool {
		return strings.HasPrefix(op.Path, "/spec/") && op.Path != "/spec/volumeName"
	})
	if fixed {
		return []string{
			fmt.Sprintf("kubectl get %s -o json |", of),
			fmt.Sprintf("  kubectl patch --local -f - --type=json -o json -p '%s' |", patchText(patch, "")),
			"  kubectl replace --force -f -",
		}
	}
	return []string{fmt.Sprintf("kubectl patch %s --type=json -p '%s'", of, patchText(patch, ""))}
}
