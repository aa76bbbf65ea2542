package why

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/fix"
)

// objectCommand patches an object that no controller makes, or makes it anew where the API
// server lets nobody change that of it. What controllers do of themselves is left out.
func (f *facts) objectCommand(c *fix.Change) []string {
	patch := slices.DeleteFunc(slices.Clone(c.Patch), func(op fix.Op) bool { return strings.HasPrefix(op.Path, "/status/") })
	if len(patch) == 0 {
		return nil
	}
	of := strings.ToLower(c.Kind) + " " + word(c.Name)
	if c.Namespace != "" {
		of += " -n " + word(c.Namespace)
	}
	fixed := c.Kind == "ResourceClaim" || c.Kind == "PersistentVolumeClaim" && slices.ContainsFunc(patch, func(op fix.Op) bool {
		return strings.HasPrefix(op.Path, "/spec/") && op.Path != "/spec/volumeName"
	})
	if template := f.claimTemplate(c); template != "" {
		again := fmt.Sprintf("kubectl delete pod %s -n %s", word(f.api.Name), word(f.api.Namespace))
		if metav1.GetControllerOfNoCopy(f.api) == nil {
			again = fmt.Sprintf("kubectl get pod %s -n %s -o json | kubectl replace --force -f -", word(f.api.Name), word(f.api.Namespace))
		}
		return append(anew(fmt.Sprintf("resourceclaimtemplate %s -n %s", word(template), word(c.Namespace)), patchText(patch, "/spec")), again)
	}
	if fixed {
		return anew(of, patchText(patch, ""))
	}
	return []string{fmt.Sprintf("kubectl patch %s --type=json -p '%s'", of, patchText(patch, ""))}
}

// claimTemplate is the template of which the claim for devices is made anew with the pod; ""
// for another object.
func (f *facts) claimTemplate(c *fix.Change) string {
	if c.Kind != "ResourceClaim" || f.api == nil {
		return ""
	}
	for _, made := range f.api.Status.ResourceClaimStatuses {
		if made.ResourceClaimName == nil || *made.ResourceClaimName != c.Name {
			continue
		}
		for _, r := range f.api.Spec.ResourceClaims {
			if r.Name == made.Name && r.ResourceClaimTemplateName != nil {
				return *r.ResourceClaimTemplateName
			}
		}
	}
	return ""
}

// anew are the commands that make an object anew with a patch.
func anew(of, patch string) []string {
	return []string{
		fmt.Sprintf("kubectl get %s -o json |", of),
		fmt.Sprintf("  kubectl patch --local -f - --type=json -o json -p '%s' |", patch),
		"  kubectl replace --force -f -",
	}
}
