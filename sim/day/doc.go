// Package day plays a scheduler's day: a machine is told of API objects as a watch
// would tell it, its effects are carried out on them, and each step can be recorded
// (edge/recording). The clock is the caller's, so that a day passes as fast as the
// machine decides.
package day
