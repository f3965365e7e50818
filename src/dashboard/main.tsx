/** Where the pages begin. */
import { render } from 'preact';
import { App } from './app.tsx';
import { showDirections } from './directions.ts';
import { applyTheme } from './theme.ts';
import './styles.css';

applyTheme();
showDirections();
const root = document.getElementById('app');
if (root) render(<App />, root);
