package why

import (
	"fmt"
	"strings"
)

func (f *facts) deviceText() string {
	var parts []string
	for i := range f.pod.Claims {
		if name := f.pod.Claims[i].Claim; name != "" {
			parts = append(parts, "claim "+name)
		}
	}
	for i := range f.pod.Extended {
		parts = append(parts, fmt.Sprintf("%d %s", f.pod.Extended[i].Count, f.pod.Extended[i].Resource))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
