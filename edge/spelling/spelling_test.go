package spelling

import "testing"

// Each change, addition and omission counts once, in both directions.
func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"web", "web", 0}, {"", "web", 3}, {"web", "wet", 1}, {"web", "webs", 1}, {"node-1", "node1", 1},
		{"NodeResorceFit", "NodeResourcesFit", 2}, {"kitten", "sitting", 3},
	} {
		if got := Distance(test.a, test.b); got != test.want {
			t.Errorf("Distance(%q, %q) is %d, want %d", test.a, test.b, got, test.want)
		}
		if got := Distance(test.b, test.a); got != test.want {
			t.Errorf("Distance(%q, %q) is %d, want %d", test.b, test.a, got, test.want)
		}
	}
}

// A slip of the pen is near. Another member of a series and another short word are not.
func TestNear(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"nvidia.com/gpus", "nvidia.com/gpu", true}, {"Linux", "linux", true}, {"diskType", "disk-type", true}, {"databse", "database", true}, {"webs", "web", true},
		{"gpuu", "gpu", true}, {"wbe", "web", true}, {"standrad", "standard", true}, {"ab", "ba", false}, {"node-12", "node-21", false},
		{"a100", "A100", true}, {"a100", "h100", false},
		{"ssd", "hdd", false}, {"a", "b", false}, {"", "a", false}, {"a", "", false}, {"eu-west-1a", "eu-west-1b", false}, {"node-1", "node-2", false}, {"team-a", "team-b", false},
		{"nvidia.com/gpu", "amd.com/gpu", false}, {"cache", "database", false},
	} {
		if got := Near(test.a, test.b); got != test.want {
			t.Errorf("Near(%q, %q) is %t", test.a, test.b, got)
		}
	}
}
