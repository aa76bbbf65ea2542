package draw

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Every number is drawn by some pod and attempt, about as often as the others,
// and 0 where there is nothing to choose.
func TestNumber(t *testing.T) {
	const n, pods = 7, 7000
	var drawn [n]int
	for i := range pods {
		drawn[Number(Seed(1, types.UID(fmt.Sprint(i%100)), 1+i/100), n)]++
	}
	for i, times := range drawn {
		if times < pods/n*8/10 || times > pods/n*12/10 {
			t.Errorf("%d was drawn %d times of %d", i, times, pods)
		}
	}
	if got := Number(1, 1) + Number(1, 0); got != 0 {
		t.Errorf("of nothing %d was drawn", got)
	}
}
