package main

import (
	"testing"

	"hardtack/examples/internal/runexample"
)

func TestMain(m *testing.M) { runexample.Main(m, main) }

func TestPubSub(t *testing.T) {
	env := runexample.Env(t)
	runexample.Start(t, env, "broker").Want("serving")
	one, two := runexample.Start(t, env, "sub", "weather"), runexample.Start(t, env, "sub", "weather")
	other := runexample.Start(t, env, "sub", "sport")
	one.Want("weather: subscribed")
	two.Want("weather: subscribed")
	other.Want("sport: subscribed")
	runexample.Start(t, env, "pub", "weather", "rain").Wait()
	one.Want("weather: rain")
	two.Want("weather: rain")
	one.Kill() // subscribers may go as they like
	runexample.Start(t, env, "pub", "weather", "sun").Wait()
	two.Want("weather: sun")
	runexample.Start(t, env, "pub", "sport", "2:1").Wait()
	other.Want("sport: 2:1") // and nothing of the weather before it
}
