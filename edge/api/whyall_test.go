package api

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods that fit and wait for more than a few seconds are said to, with the longest time.
func TestWhyAllOfPodsThatFit(t *testing.T) {
	f := stuck(t)
	f.pods["shop/big"].Spec.NodeName, f.pods["shop/small"].Spec.NodeName = "n1", "n1"
	for after, want := range map[time.Duration]string{
		23 * time.Second: "fitting now, and not placed yet; waiting for up to 23s: `berth status` says how it stands with the scheduler\n",
		2 * time.Second:  "fitting now, and not placed yet\n",
	} {
		f.pod("fits", "10m").CreationTimestamp = metav1.Time{Time: f.now.Add(-after)}
		if _, body := f.get("why/all?output=text", nil); !strings.Contains(body, want) {
			t.Errorf("%s: no %q in\n%s", after, want, body)
		}
	}
}
