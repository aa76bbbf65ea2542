package why

import (
	"encoding/json"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deletedText says since when a pod without a node is being deleted, and what holds it.
func deletedText(p *v1.Pod) string {
	text := fmt.Sprintf("%s/%s is being deleted", p.Namespace, p.Name)
	if l := leavingOf(p); l.known {
		text += l.since()
	}
	return text + " and is not scheduled" + heldByFinalizers(p.Finalizers)
}

// heldByFinalizers says which finalizers hold an object that is being deleted, and who takes them
// off, as the end of a sentence; "" where none does.
func heldByFinalizers(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(": it stays as long as it has the finalizer %s, which %s", names[0], freedBy(names[0]))
	}
	return ": it stays as long as it has the " + finalizers(names)
}

// freedBy says who takes the finalizer off.
func freedBy(finalizer string) string {
	switch finalizer {
	case metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents:
		return "the garbage collector takes off"
	case "batch.kubernetes.io/job-tracking":
		return "the Job controller takes off"
	case "kubernetes.io/pvc-protection":
		return "kube-controller-manager takes off once no pod with a node uses it"
	}
	if of, _, both := strings.Cut(finalizer, "/"); both {
		return "the controller of " + of + " takes off"
	}
	return "its controller takes off"
}

// deletedClaim says since when the claim is being deleted and what holds it, as its JSON has it,
// and who uses it.
func deletedClaim(name string, data []byte, users string) string {
	var written metav1.PartialObjectMetadata
	if data != nil {
		_ = json.Unmarshal(data, &written) // it was read once
	}
	text := "claim " + name
	if at := written.DeletionTimestamp; at != nil {
		text += sinceText(pointer(at.UTC()))
	}
	text += heldByFinalizers(written.Finalizers)
	if users != "" {
		text += "; " + users
	}
	return text + "; make it anew once it is gone"
}
