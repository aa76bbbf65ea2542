package decode

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// Two entries of a pod may name one claim, which counts once; one from a
// template counts when its claim was made.
func TestClaimsOfAPod(t *testing.T) {
	shared, made := "shared", "made"
	p := &v1.Pod{Spec: v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{
		{Name: "a", ResourceClaimName: &shared}, {Name: "b", ResourceClaimName: &shared},
		{Name: "c", ResourceClaimTemplateName: &shared},
	}}, Status: v1.PodStatus{ResourceClaimStatuses: []v1.PodResourceClaimStatus{{Name: "c", ResourceClaimName: &made}}}}
	got := podClaims(p)
	if len(got) != 2 || got[0].Claim != shared || got[0].Owned || got[1].Claim != made || !got[1].Owned {
		t.Errorf("got %+v", got)
	}
}
