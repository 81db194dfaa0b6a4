package protocol

// StageBuild asks to compile the job, and no more.
const StageBuild = "build"
