package scheduler_test

import (
	"fmt"

	"github.com/berth-scheduler/berth/scheduler"
)

// A scheduler of one's own is a main that runs this command; here it is asked
// for a flag instead.
func ExampleNewCommand() {
	command := scheduler.NewCommand()
	fmt.Println(command.Name(), "serves on port", command.Flags().Lookup("secure-port").DefValue)
	// Output: berth-scheduler serves on port 10259
}
