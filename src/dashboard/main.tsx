/** Where the pages begin. */
import { render } from 'preact';
import { App } from './app.tsx';
import { applyTheme } from './theme.ts';
import './styles.css';

applyTheme();
const root = document.getElementById('app');
if (root) render(<App />, root);
