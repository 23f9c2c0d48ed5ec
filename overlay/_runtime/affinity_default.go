package runtime

// affDefault is the policy without HARDTACK_AFFINITY in the environment.
const affDefault = affOff
