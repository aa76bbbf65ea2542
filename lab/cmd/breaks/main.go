// Command breaks breaks Berth on purpose, one rule at a time, and looks if the
// comparison with kube-scheduler sees it.
package main

import (
	"fmt"
	"os"

	"github.com/berth-scheduler/berth/lab/breaks"
)

func main() {
	if err := breaks.NewCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "breaks:", err)
		os.Exit(1)
	}
}
