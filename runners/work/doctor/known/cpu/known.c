void known(const float *x, float *y, int N)
{
	for (int i = 0; i < N; i++) {
		float v = x[i];
		for (int k = 0; k < 64; k++)
			v = 0.5f * v + 0.25f;
		y[i] = v + x[i];
	}
}
