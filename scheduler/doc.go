// Package scheduler is Berth as a command, for people who build a scheduler of
// their own: a main calls NewCommand with options and runs it.
//
//	func main() {
//		os.Exit(cli.Run(scheduler.NewCommand()))
//	}
//
// The command takes kube-scheduler's flags and configuration file.
//
// This package is the only one whose Go API is stable. All others, those below
// core and edge included, may change with any release, and with them
// WithNativePlugin.
package scheduler
